"""What programs/root_fill and the report run, as root: `python3 -m programs.root_changes.run VERB ...`.

    filled VERSION [PID]   checks a filled version and writes its manifest; with PID, compares it with the root of that process, once
                           standard input has a line, which says that the copy is done
    carry VERSION FROM     copies the changes in version FROM into the version that is being filled
    report                 prints the changes in every version; with SLIPWAY_REPORT=json, as JSON

Exit code 1: failed. 3: failed, and the next try cannot help. 4: the copy differs from its source.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from names import paths, variables

from .carry import apply
from .compare import compare
from .picture import Entry, ManifestError, Picture, read_manifest, shown, write_manifest
from .plan import Plan, plan_carry
from .report import as_data, as_text, shortened
from .walk import compared_with, inside, look, walk, worth_reading

SHARED = Path(paths.SHARED)
_NEVER_TOLD = "was filled before Slipway kept manifests: what was changed in it cannot be told"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["filled", version]:
            filled(version, None)
        case ["filled", version, process]:
            filled(version, Path("/proc") / process)
        case ["carry", version, old]:
            carry(version, old)
        case ["report"]:
            report(os.environ.get(variables.REPORT) == "json")
        case _:
            end(1, "say filled VERSION [PID], carry VERSION FROM, or report")
    return 0


def filled(version: str, source: Path | None) -> None:
    """Checks a copy, and compares it with its source, if given. Writes the manifest, which gets its final name with the version.

    The source is read while it is still being copied. A line on standard input says when the copy is done.
    """
    copy = SHARED / "filling" / version
    if source is None:
        with inside(str(copy)):
            copied = dict(walk(_nothing))
            picture = look(worth_reading(), copied.items())
    else:
        mounted = mounts_of((source / "mountinfo").read_bytes())
        with inside(f"{source}/root"):
            wanted = dict(walk(lambda path, _: path in mounted))
            picture = look(worth_reading(), wanted.items())
        if not sys.stdin.readline():
            end(1, "there is no whole copy")
        for path in mounted:  # files of the container runtime, which are not the image's
            place = Path(os.fsdecode(os.fsencode(copy) + b"/" + path))
            if place.is_symlink() or place.is_file():
                place.unlink()
        with inside(str(copy)):
            copied = dict(walk(lambda path, _: path in mounted))
        if different := sorted(path for path in {*wanted, *copied} if not is_copied(wanted.get(path), copied.get(path))):
            say(f"the copy differs from the image in {len(different)} places, the first is {shown(different[0])}")
            sys.exit(4)
        times = {path: copied[path].mtime_ns for path in picture.entries}
        picture = picture._replace(entries={path: entry._replace(mtime_ns=times[path]) for path, entry in picture.entries.items()})
    devices = sorted(path for path, entry in copied.items() if entry.kind in "bc")
    if devices:
        end(3, f"it has device nodes outside /dev, which no version may: {' '.join(map(shown, devices[:5]))}")
    write(version, "manifest", write_manifest(picture))


def carry(version: str, old: str) -> None:
    """Copies the changes, and records what was copied and what was not."""
    base, new = manifest_of(old, ""), manifest_of(version, ".new")
    if not (SHARED / "versions" / old).is_dir():
        end(1, f"carryFrom: version {old} is not filled, so there is nothing to carry from it")
    if base is None or new is None:
        end(3, f"carryFrom: version {old} {_NEVER_TOLD}. Leave carryFrom out, and copy by hand what you know of")
    target = os.open(SHARED / "filling" / version, os.O_RDONLY | os.O_DIRECTORY)
    needed = compared_with(base)
    also = compared_with(new)
    with inside(f"{SHARED}/versions/{old}"):
        now = look(lambda path, entry: needed(path, entry) or also(path, entry))
        changes = compare(base, now)
        plan = plan_carry(base, now, changes, new)
        lost = apply(plan, target)
    os.close(target)
    settled = settle(SHARED / "filling" / version, plan)
    told = [f"from {old}", *tell(plan, now, lost), *settled, *(f"file {shown(path)}" for path in files_of(plan, now))]
    write(version, "carried", "".join(f"{line}\n" for line in told).encode())
    for line in shortened(told):
        say(f"carried: {line}")


def tell(plan: Plan, now: Picture, lost: list[tuple[bytes, str]]) -> Iterator[str]:
    """The result of a plan, as lines, without the files."""
    yield (
        f"{len(plan.packages)} packages, {len(files_of(plan, now))} files of no package, {len(plan.accounts.users)} users,"
        f" {len(plan.conflicts)} conflicts"
    )
    yield from (f"CONFLICT, the new one's stays: {what}: {why}" for what, why in plan.conflicts)
    yield from (f"not carried whole: {shown(path)} {why}" for path, why in lost)
    yield from (f"removed there, kept here: {what}" for what in plan.not_removed)
    yield from (f"package {name} {now.packages[name]}" for name in plan.packages)
    yield from (f"user {name}" for name in plan.accounts.users)
    yield from (f"group {name}" for name in plan.accounts.groups)


def files_of(plan: Plan, now: Picture) -> list[bytes]:
    """Carried paths of no package, without folders."""
    return [path for path in plan.paths if now.entries[path].kind != "d" and now.entries[path].package not in plan.packages]


def settle(root: Path, plan: Plan) -> Iterator[str]:
    """Updates the loader's cache and runs dpkg --audit, with our image's programs: no program of the version runs here."""
    if any(b".so" in path.rpartition(b"/")[2] for path in plan.paths):
        done = subprocess.run(["ldconfig", "-r", root], capture_output=True, text=True, check=False)
        yield "ldconfig: done" if done.returncode == 0 else f"ldconfig: FAILED: {done.stderr.strip()[-500:]}"
    if plan.packages:
        done = subprocess.run(["dpkg", f"--admindir={root}/var/lib/dpkg", "--audit"], capture_output=True, text=True, check=False)
        findings = (done.stdout + done.stderr).strip()
        yield f"dpkg --audit: {findings or 'nothing to say'}"


def report(is_json: bool) -> None:
    """Prints the changes of every version, and marks the current one."""
    folder = SHARED / "versions"
    current = os.path.basename(os.readlink(SHARED / "current")) if (SHARED / "current").is_symlink() else ""  # noqa: PTH115, PTH119
    all_of_them: list[dict[str, Any]] = []
    for version in sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []:
        about = {"version": version, "current": version == current, "filledFrom": read_text(SHARED / "sources" / version)}
        title = f"version {version}{' (current)' if about['current'] else ''}, filled from {about['filledFrom'] or 'something unknown'}"
        try:
            base = manifest_of(version, "")
        except ManifestError as error:
            base = None
            about["problem"] = f"its manifest is no use: {error}"
        else:
            if base is None:
                about["problem"] = _NEVER_TOLD
        if base is None:
            lines = [f"  {about['problem']}"]
        else:
            try:
                with inside(str(folder / version)):
                    now = look(compared_with(base))
            except FileNotFoundError:
                continue  # removed at this moment
            changes = compare(base, now)
            lines = as_text(changes, now)
            about |= as_data(changes, now)
        all_of_them.append(about)
        if not is_json:
            sys.stdout.write("".join(f"{line}\n" for line in (title, *lines)))
            sys.stdout.flush()
    if is_json:
        sys.stdout.write(json.dumps({"versions": all_of_them}, indent=1) + "\n")
    elif not all_of_them:
        sys.stdout.write("no version is filled\n")


def manifest_of(version: str, ending: str) -> Picture | None:
    """None if there is no manifest. Raises ManifestError."""
    try:
        return read_manifest((SHARED / "sources" / f"{version}.manifest{ending}").read_bytes())
    except FileNotFoundError:
        return None


def mounts_of(mountinfo: bytes) -> frozenset[bytes]:
    """The mount points in a container, below its root. Source: proc_pid_mountinfo(5), field 5 with octal escapes."""
    places = (line.split(b" ")[4] for line in mountinfo.splitlines())
    plain = (place.decode("latin-1").encode("latin-1").decode("unicode_escape").encode("latin-1") for place in places)
    return frozenset(place.lstrip(b"/") for place in plain if place != b"/")


def _nothing(_path: bytes, _kind: str) -> bool:
    return False


def is_copied(entry: Entry | None, copy: Entry | None) -> bool:
    """True if a copy equals its source. Times may differ, as the volume may store coarser ones."""
    return entry == copy or bool(entry and copy and entry._replace(mtime_ns=copy.mtime_ns) == copy)


def write(version: str, what: str, data: bytes) -> None:
    """Writes a record beside the version. programs/root_fill renames it when it renames the version."""
    file = SHARED / "sources" / f"{version}.{what}.new"
    file.touch(0o600)
    file.write_bytes(data)


def read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def end(code: int, text: str) -> NoReturn:
    say(text)
    sys.exit(code)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ManifestError as error:
        end(3, f"a manifest is no use: {error}")
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        end(1, "the shared volume is full" if full else f"{error.strerror}: {error.filename!r}")
