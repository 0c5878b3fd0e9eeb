"""Slurm's files as slurmctld itself reads them, before they are used: in a container of the image that will run, where that is at hand.

The container has no network, and what it needs comes through its standard input: the ConfigMaps that the plan mounts into slurmctld's pod,
and programs/config_check. So it may be on another machine than this process. Nothing is pulled, and nothing stays behind.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from engine.faults import SlipwayError
from engine.plan import revealed, unknown_path
from names import labels, variables

Manifest = Mapping[str, Any]

RUNTIMES = ("docker", "podman", "nerdctl")
"""Programs that take the same options, in the order in which they are looked for."""
NO_RUNTIME = f"none of {', '.join(RUNTIMES)} has the image"
_ROOT = Path(__file__).parents[1]
_PROGRAM = ("programs/__init__.py", "programs/config_check/*.py", "names/*.py", "slurm/*.py")
_CHECKER = "opt/check"
_PROBE_S = 5
_RUN_S = 120
"""A check takes a second or two, and the program in the container ends itself earlier than this."""
_SCRIPT = f'rm -rf "$@" && tar -x -C / && cd /{_CHECKER} && exec python3 -EsSB -m programs.config_check.run "$1"'
"""The folders that Kubernetes would mount something over are emptied first; the first is that of Slurm's files."""
_MOST = 10
_CHANGED_AT = 1_000_000_000
"""Any time but 0, in seconds since 1970: Slurm takes a Lua script of that time for one that it has loaded."""


@dataclass(frozen=True)
class Subject:
    """A slurmctld, with what is mounted into its pod."""

    image: str
    host: str
    """Its pod's host name, which slurm.conf names."""
    folders: tuple[str, ...]
    """Where ConfigMaps are mounted, the one of Slurm's files first."""
    files: Mapping[str, tuple[str, int]]
    """Text and mode by path."""


@dataclass(frozen=True)
class Line:
    """What slurmctld says of a file."""

    file: str
    text: str


@dataclass(frozen=True)
class Check:
    """What came of it for one slurmctld. With a `reason` the files were not checked."""

    image: str
    runtime: str = ""
    version: str = ""
    nodes: int | None = None
    """None where slurmctld did not read the files to their end."""
    partitions: int | None = None
    mistakes: tuple[Line, ...] = ()
    notes: tuple[Line, ...] = ()
    reason: str = ""

    @property
    def words(self) -> str:
        """For people; empty where the image is not at hand."""
        if self.reason == NO_RUNTIME:
            return ""
        if self.reason:
            return f"Slurm's files were not checked with {self.image}: {self.reason}"
        who = f"slurmctld {self.version} of {self.image}"
        if self.mistakes:
            counted = f"{len(self.mistakes)} mistake{'' if len(self.mistakes) == 1 else 's'}"
            more = [f"  and {len(self.mistakes) - _MOST} more"] if len(self.mistakes) > _MOST else []
            lines = [f"  {line.file}: {line.text}" for line in self.mistakes[:_MOST]]
            return "\n".join([f"Slurm's files: {counted}, says {who}", *lines, *more])
        return f"Slurm's files: read by {who}: {self.nodes} nodes, {self.partitions} partitions, no complaint"


def check(manifests: Sequence[Manifest], wish: str | None = None) -> list[Check]:
    """Has each slurmctld among the objects read its files. `wish` names the container runtime; without it, any that has the image is used.

    Raises SlipwayError where the wished one cannot do it.
    """
    if wish is None and os.environ.get(variables.CHECK) == "off":
        return []
    checks = [_check(subject, wish) for subject in subjects(manifests)]
    if wish and (failed := next((each for each in checks if each.reason), None)):
        remedy = f"Fetch the image with `{wish} pull {failed.image}`, or leave out --check-with." if failed.reason == NO_RUNTIME else ""
        reason = f"{wish} does not have the image" if failed.reason == NO_RUNTIME else failed.reason
        raise SlipwayError(f"--check-with {wish}: Slurm's files were not checked with {failed.image}: {reason}. {remedy}".rstrip())
    return checks


def as_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """The checks for programs."""
    return [asdict(each) for each in checks]


def subjects(manifests: Sequence[Manifest]) -> list[Subject]:
    """Every slurmctld. One whose files are known only after `up`, or are not among the objects, is left out."""
    found = (_subject(each, manifests) for each in manifests if each.get("kind") == "StatefulSet")
    return [each for each in found if each]


def command(runtime: str, subject: Subject, name: str) -> list[str]:
    """The container. It may give its loopback device an address of its own, as Slurm looks up no name without."""
    options = ["--rm", "--interactive", "--pull", "never", "--name", name, "--network", "none", "--cap-add", "NET_ADMIN"]
    options += ["--hostname", subject.host, "--user", "0:0", "--tmpfs", "/tmp", "--entrypoint", "sh"]  # noqa: S108 - of the container
    return [runtime, "run", *options, subject.image, "-c", _SCRIPT, "sh", *subject.folders]


def archive(subject: Subject) -> bytes:
    """The files, and the program that checks them, as a tar archive of a root file system."""
    sources = (file for pattern in _PROGRAM for file in sorted(_ROOT.glob(pattern)))
    programs = {f"{_CHECKER}/{file.relative_to(_ROOT)}": (file.read_text(), 0o444) for file in sources}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (text, mode) in {**{path.lstrip("/"): file for path, file in subject.files.items()}, **programs}.items():
            content = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(content), mode, _CHANGED_AT
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _check(subject: Subject, wish: str | None) -> Check:
    found = [each for each in ((wish,) if wish else RUNTIMES) if shutil.which(each)]
    if wish and not found:
        return Check(subject.image, wish, reason=f"there is no program {wish}")
    runtime = next((each for each in found if _has_image(each, subject.image)), None)
    if runtime is None:
        return Check(subject.image, reason=NO_RUNTIME)
    return read_answer(subject.image, runtime, *_run(runtime, subject))


def _has_image(runtime: str, image: str) -> bool:
    asked = [runtime, "image", "inspect", image]
    try:
        done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(runtime: str, subject: Subject) -> tuple[str, str]:
    """What the container printed: its answer and its errors."""
    name = f"slipway-check-{os.getpid()}"
    try:
        done = subprocess.run(command(runtime, subject, name), input=archive(subject), capture_output=True, timeout=_RUN_S, check=False)
    except OSError as error:
        return "", f"{runtime}: {error.strerror}"
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([runtime, "rm", "--force", name], capture_output=True, timeout=_PROBE_S, check=False)
        return "", f"{runtime} did not end within {_RUN_S} s"
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def read_answer(image: str, runtime: str, answer: str, errors: str) -> Check:
    """The check, from what the container printed."""
    try:
        said = json.loads(answer.strip().splitlines()[-1])
        if fault := said.get("fault"):
            return Check(image, runtime, reason=str(fault))
        read = said["sets"][0]
        mistakes, notes = (tuple(Line(each["file"], each["text"]) for each in read[kind]) for kind in ("mistakes", "notes"))
        return Check(image, runtime, said["version"], read.get("nodes"), read.get("partitions"), mistakes, notes)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        last = errors.strip().splitlines()[-1:] or [f"{runtime} gave no answer"]
        return Check(image, runtime, reason=last[0])


def _subject(workload: Manifest, manifests: Sequence[Manifest]) -> Subject | None:
    """What a StatefulSet's container `slurmctld` is given; None where it has none, or not all of its files are known."""
    spec = _part(workload, "spec", "template", "spec")
    container = next((each for each in _parts(spec, "containers") if each.get("name") == "slurmctld"), None)
    if container is None:
        return None
    namespace = _part(workload, "metadata").get("namespace")
    near = [each for each in manifests if each.get("kind") == "ConfigMap" and _part(each, "metadata").get("namespace") == namespace]
    maps = {_name(each): each for each in near}
    volumes = {each.get("name"): _part(each, "configMap") for each in _parts(spec, "volumes")}
    files: dict[str, tuple[str, int]] = {}
    folders: list[str] = []
    for mount in _parts(container, "volumeMounts"):
        volume = volumes.get(mount.get("name"), {})
        if (source := maps.get(str(volume.get("name")))) is None:
            continue
        if unknown_path(source.get("data") or {}):
            return None
        data = cast(Mapping[str, str], revealed(_part(source, "data")))
        folders.insert(0 if "slurm.conf" in data else len(folders), mount["mountPath"])
        mode = int(volume.get("defaultMode") or 0o644)
        files |= {f"{mount['mountPath']}/{path}": (data[key], mode) for key, path in _items(volume, data)}
    if not folders or f"{folders[0]}/slurm.conf" not in files or not isinstance(container.get("image"), str):
        return None
    for text in _databases(workload, near):
        files[f"{folders[0]}/slurmdbd.conf"] = (text, 0o444)
    return Subject(container["image"], f"{_name(workload)}-0", tuple(folders), files)


def _items(volume: Mapping[str, Any], data: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys of a ConfigMap, and the paths that its volume gives them."""
    if items := _parts(volume, "items"):
        return [(each["key"], each["path"]) for each in items if each["key"] in data]
    return [(key, key) for key in data]


def _databases(workload: Manifest, maps: Sequence[Manifest]) -> Iterator[str]:
    """slurmdbd.conf of the same cluster."""
    cluster = _part(workload, "metadata", "labels").get(labels.CLUSTER)
    for each in maps:
        text = _part(each, "data").get("slurmdbd.conf")
        if isinstance(text, str) and _part(each, "metadata", "labels").get(labels.CLUSTER) == cluster:
            yield text


def _name(manifest: Manifest) -> str:
    return str(_part(manifest, "metadata").get("name"))


def _parts(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """A list of mappings inside a manifest; an empty one where there is none."""
    return cast(list[Mapping[str, Any]], value.get(key) or [])


def _part(value: Any, *keys: str) -> Mapping[str, Any]:
    """A mapping inside a manifest; an empty one where there is none."""
    for key in keys:
        value = cast(Mapping[str, Any], value).get(key) if isinstance(value, Mapping) else None
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
