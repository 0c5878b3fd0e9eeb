"""Has slurmctld read Slurm's files before they are used, in a container of the image that will run, if a runtime has it.

The container has no network. Its standard input contains the ConfigMaps of slurmctld's pod and programs/config_check, so it may run on
another machine. No image is pulled, and nothing stays behind.
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
"""Programs with the same options, in order of preference."""
NO_RUNTIME = f"none of {', '.join(RUNTIMES)} has the image"
_ROOT = Path(__file__).parents[1]
_PROGRAM = ("programs/__init__.py", "programs/config_check/*.py", "names/*.py", "slurm/*.py")
_CHECKER = "opt/check"
_PROBE_S = 5
_RUN_S = 120
"""A check takes a second or two, and the program in the container has a shorter limit."""
_SCRIPT = f'rm -rf "$@" && tar -x -C / && cd /{_CHECKER} && exec python3 -EsSB -m programs.config_check.run "$1"'
"""Empties the folders that are mounted in Kubernetes, then runs the check. The first folder is that of Slurm's files."""
_MOST = 10
_CHANGED_AT = 1_000_000_000
"""Any time but 0, in seconds since 1970: Slurm considers a Lua script of time 0 loaded."""


@dataclass(frozen=True)
class Subject:
    """A slurmctld and the files in its pod."""

    image: str
    host: str
    """The pod's host name, as in slurm.conf."""
    folders: tuple[str, ...]
    """Mount points of ConfigMaps; Slurm's files come first."""
    files: Mapping[str, tuple[str, int]]
    """Text and mode by path."""


@dataclass(frozen=True)
class Line:
    """A message of slurmctld about a file."""

    file: str
    text: str


@dataclass(frozen=True)
class Check:
    """The check of one slurmctld. If it has a `reason`, the files were not checked."""

    image: str
    runtime: str = ""
    version: str = ""
    nodes: int | None = None
    """None if slurmctld did not read the files to the end."""
    partitions: int | None = None
    mistakes: tuple[Line, ...] = ()
    notes: tuple[Line, ...] = ()
    reason: str = ""

    @property
    def words(self) -> str:
        """The result in words; empty if no runtime has the image."""
        if self.reason == NO_RUNTIME:
            return ""
        if self.reason:
            return f"Slurm's files were not checked with {self.image}: {self.reason}"
        slurmctld = f"slurmctld {self.version} of {self.image}"
        if self.mistakes:
            count = f"{len(self.mistakes)} mistake{'' if len(self.mistakes) == 1 else 's'}"
            overflow = [f"  and {len(self.mistakes) - _MOST} more"] if len(self.mistakes) > _MOST else []
            lines = [f"  {line.file}: {line.text}" for line in self.mistakes[:_MOST]]
            return "\n".join([f"Slurm's files: {count}, says {slurmctld}", *lines, *overflow])
        return f"Slurm's files: read by {slurmctld}: {self.nodes} nodes, {self.partitions} partitions, no complaint"


def check(manifests: Sequence[Manifest], wish: str | None = None) -> list[Check]:
    """Has each slurmctld among the objects read its files, with the container runtime `wish` or any that has the image.

    Raises SlipwayError if `wish` cannot do it.
    """
    if wish is None and os.environ.get(variables.CHECK) == "off":
        return []
    checks = [_check(subject, wish) for subject in subjects(manifests)]
    if wish and (failed := next((result for result in checks if result.reason), None)):
        remedy = f"Fetch the image with `{wish} pull {failed.image}`, or leave out --check-with." if failed.reason == NO_RUNTIME else ""
        reason = f"{wish} does not have the image" if failed.reason == NO_RUNTIME else failed.reason
        raise SlipwayError(f"--check-with {wish}: Slurm's files were not checked with {failed.image}: {reason}. {remedy}".rstrip())
    return checks


def as_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """The checks as JSON."""
    return [asdict(item) for item in checks]


def subjects(manifests: Sequence[Manifest]) -> list[Subject]:
    """Every slurmctld whose files are among the objects and known before `up`."""
    all_subjects = (_subject(manifest, manifests) for manifest in manifests if manifest.get("kind") == "StatefulSet")
    return [manifest for manifest in all_subjects if manifest]


def command(runtime: str, subject: Subject, name: str) -> list[str]:
    """The command that runs the container. It may set an address on its loopback device: Slurm resolves no name without one."""
    options = ["--rm", "--interactive", "--pull", "never", "--name", name, "--network", "none", "--cap-add", "NET_ADMIN"]
    options += ["--hostname", subject.host, "--user", "0:0", "--tmpfs", "/tmp", "--entrypoint", "sh"]  # noqa: S108 - of the container
    return [runtime, "run", *options, subject.image, "-c", _SCRIPT, "sh", *subject.folders]


def archive(subject: Subject) -> bytes:
    """A tar archive of the files and of the program that checks them."""
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
    installed = [runtime_name for runtime_name in ((wish,) if wish else RUNTIMES) if shutil.which(runtime_name)]
    if wish and not installed:
        return Check(subject.image, wish, reason=f"there is no program {wish}")
    runtime = next((runtime_name for runtime_name in installed if _has_image(runtime_name, subject.image)), None)
    if runtime is None:
        return Check(subject.image, reason=NO_RUNTIME)
    return read_answer(subject.image, runtime, *_run(runtime, subject))


def _has_image(runtime: str, image: str) -> bool:
    command_line = [runtime, "image", "inspect", image]
    try:
        result = subprocess.run(command_line, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0


def _run(runtime: str, subject: Subject) -> tuple[str, str]:
    """The container's standard output and standard error."""
    name = f"slipway-check-{os.getpid()}"
    try:
        result = subprocess.run(command(runtime, subject, name), input=archive(subject), capture_output=True, timeout=_RUN_S, check=False)
    except OSError as error:
        return "", f"{runtime}: {error.strerror}"
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([runtime, "rm", "--force", name], capture_output=True, timeout=_PROBE_S, check=False)
        return "", f"{runtime} did not end within {_RUN_S} s"
    return result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")


def read_answer(image: str, runtime: str, answer: str, errors: str) -> Check:
    """The check, parsed from the container's output."""
    try:
        report = json.loads(answer.strip().splitlines()[-1])
        if fault := report.get("fault"):
            return Check(image, runtime, reason=str(fault))
        first_set = report["sets"][0]
        mistakes, notes = (tuple(Line(line["file"], line["text"]) for line in first_set[kind]) for kind in ("mistakes", "notes"))
        return Check(image, runtime, report["version"], first_set.get("nodes"), first_set.get("partitions"), mistakes, notes)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        last = errors.strip().splitlines()[-1:] or [f"{runtime} gave no answer"]
        return Check(image, runtime, reason=last[0])


def _subject(workload: Manifest, manifests: Sequence[Manifest]) -> Subject | None:
    """The files of a StatefulSet's container `slurmctld`; None without such a container, or if not all files are known."""
    spec = _part(workload, "spec", "template", "spec")
    container = next((item for item in _parts(spec, "containers") if item.get("name") == "slurmctld"), None)
    if container is None:
        return None
    namespace = _part(workload, "metadata").get("namespace")
    config_maps = [item for item in manifests if item.get("kind") == "ConfigMap" and _part(item, "metadata").get("namespace") == namespace]
    maps_by_name = {_name(item): item for item in config_maps}
    volumes = {item.get("name"): _part(item, "configMap") for item in _parts(spec, "volumes")}
    files: dict[str, tuple[str, int]] = {}
    folders: list[str] = []
    for mount in _parts(container, "volumeMounts"):
        volume = volumes.get(mount.get("name"), {})
        if (source := maps_by_name.get(str(volume.get("name")))) is None:
            continue
        if unknown_path(source.get("data") or {}):
            return None
        data = cast(Mapping[str, str], revealed(_part(source, "data")))
        folders.insert(0 if "slurm.conf" in data else len(folders), mount["mountPath"])
        mode = int(volume.get("defaultMode") or 0o644)
        files |= {f"{mount['mountPath']}/{path}": (data[key], mode) for key, path in _items(volume, data)}
    if not folders or f"{folders[0]}/slurm.conf" not in files or not isinstance(container.get("image"), str):
        return None
    for text in _databases(workload, config_maps):
        files[f"{folders[0]}/slurmdbd.conf"] = (text, 0o444)
    return Subject(container["image"], f"{_name(workload)}-0", tuple(folders), files)


def _items(volume: Mapping[str, Any], data: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys of a ConfigMap and their paths in its volume."""
    if items := _parts(volume, "items"):
        return [(item["key"], item["path"]) for item in items if item["key"] in data]
    return [(key, key) for key in data]


def _databases(workload: Manifest, maps: Sequence[Manifest]) -> Iterator[str]:
    """The slurmdbd.conf of the same cluster."""
    cluster = _part(workload, "metadata", "labels").get(labels.CLUSTER)
    for config_map in maps:
        text = _part(config_map, "data").get("slurmdbd.conf")
        if isinstance(text, str) and _part(config_map, "metadata", "labels").get(labels.CLUSTER) == cluster:
            yield text


def _name(manifest: Manifest) -> str:
    return str(_part(manifest, "metadata").get("name"))


def _parts(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """A list of mappings inside a manifest; empty if it is missing."""
    return cast(list[Mapping[str, Any]], value.get(key) or [])


def _part(value: Any, *keys: str) -> Mapping[str, Any]:
    """A mapping inside a manifest; empty if it is missing."""
    for key in keys:
        value = cast(Mapping[str, Any], value).get(key) if isinstance(value, Mapping) else None
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
