"""`slipway ci`: for every stack of a repository, mistakes, policies, and what the working tree would change compared with a base commit.

It needs git and the project's packages; without --live, neither a cluster nor credentials. Each plan is made by a process of its own,
which is started in the commit's own files: the base commit in a git worktree, and with its own packages where its requirements differ.
"""

import ast
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.comment import CHANGES, DANGEROUS, NOTHING, Report, block, exit_code, folded, mistakes, render
from engine.faults import SlipwayError
from names.variables import CHECK, POLICIES

_HERE = Path(__file__).parent
_REQUIREMENTS = "requirements.txt"
_KEPT = ".slipway"
"""What commands keep beside a project, outside of git: for instance the key that `make up` makes."""
_RUN = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
"""Runs a package of a folder that is not on the import path; -P keeps the project's own folder off it until its program is run."""
_PACKAGE = "cli"
_CODES = (NOTHING, CHANGES, DANGEROUS)


@dataclass(frozen=True)
class Tree:
    """A state of the project: its folder, and the Python that has its packages."""

    root: Path
    python: Path


@dataclass(frozen=True)
class Base:
    """The state that the working tree is compared with. Without a tree, `reason` says why there is none."""

    name: str
    tree: Tree | None
    reason: str = ""


def run(root: Path, base: str, stacks: Sequence[str], config: Sequence[str], output: Path, is_live: bool) -> int:
    """Checks and compares all stacks, writes `plan.md` (`live.md`) to the folder `output`, prints it, and returns the exit code.

    Raises SlipwayError where the comparison cannot start: no git repository, no such commit, no stack.
    """
    here, output = Tree(root.resolve(), Path(sys.executable)), output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    names = list(stacks) or stacks_in(here.root)
    if not names:
        raise SlipwayError(
            f"{here.root}: there is no Pulumi.<stack>.yaml. Start this in the folder of the project, or name it with --root."
        )
    if is_live:
        reports = [_live(here, stack, config, output) for stack in names]
        compared = "Compared with the cluster, which says what becomes of its jobs."
    else:
        commit = _merge_base(here.root, base)
        with _worktree(here.root, commit) as folder:
            found = _base(here, folder, f"{base} ({commit[:7]})")
            reports = [_planned(found, here, stack, config, output) for stack in names]
            gone = [] if stacks else [stack for stack in stacks_in(folder) if stack not in names]
        reports += [*lint(here.root), *(_gone(stack) for stack in gone)]
        compared = f"Compared with {found.name}, without a cluster."
        compared += f" {found.reason}" if found.reason else ""
    text = render(compared, reports)
    (output / ("live.md" if is_live else "plan.md")).write_text(text)
    sys.stdout.write(text)
    return exit_code(reports)


def stacks_in(root: Path) -> list[str]:
    """The stacks of a project, from the names of its files."""
    found = (re.fullmatch(r"Pulumi\.([A-Za-z0-9_.-]+)\.yaml", path.name) for path in root.glob("Pulumi.*.yaml"))
    return sorted(match.group(1) for match in found if match)


def lint(root: Path) -> list[Report]:
    """A report of the project's Python files that cannot be parsed, whether its program imports them or not; none where all can."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py").stdout
    faults: list[str] = []
    for name in sorted(set(filter(None, listed.split("\0")))):
        file = root / name
        try:
            if file.is_file():
                ast.parse(file.read_bytes(), name)
        except SyntaxError as error:
            faults.append(f"{name}:{error.lineno}: {error.msg}")
        except ValueError as error:  # a null byte
            faults.append(f"{name}: {error}")
    return [mistakes("Python files", "\n".join(faults))] if faults else []


def _live(here: Tree, stack: str, config: Sequence[str], output: Path) -> Report:
    story = output / f"{stack}.live.md"
    files = ["--markdown", story, "--json", output / f"{stack}.live.json"]
    done = _preview(here, stack, config, "--require-cluster", *files, "--exit-code")
    return _report(stack, done, story, done.stdout)


def _planned(base: Base, here: Tree, stack: str, config: Sequence[str], output: Path) -> Report:
    """The report of a stack: what its program, its policies and the comparison with the base say."""
    before, story = output / f"{stack}.base.json", output / f"{stack}.md"
    against, note = ["--against", before], ""
    if base.tree is None or not (base.tree.root / f"Pulumi.{stack}.yaml").exists():
        before.write_text('{"resources": []}\n')
    elif (recorded := _preview(base.tree, stack, config, "--offline", "--json", before, is_accepted=True)).returncode:
        before.write_text('{"resources": []}\n')
        note = f"{base.name} itself has mistakes, so all resources look new:\n\n{block(_said(recorded))}"
    done = _preview(here, stack, config, "--offline", *against, "--markdown", story, "--json", output / f"{stack}.json", "--exit-code")
    report = _report(stack, done, story, done.stdout.replace(str(before), base.name))
    return Report(stack, report.code, "\n\n".join(part for part in (report.text, note) if part))


def _report(stack: str, done: subprocess.CompletedProcess[str], story: Path, shown: str) -> Report:
    """What a preview came to: its story, and all that it showed, where something changes."""
    if done.returncode not in _CODES:
        return mistakes(stack, _said(done))
    all_of_it = folded("The whole preview: objects, and files line by line", shown)
    return Report(stack, done.returncode, story.read_text() + (f"\n{all_of_it}" if done.returncode != NOTHING else ""))


def _gone(stack: str) -> Report:
    words = f"Pulumi.{stack}.yaml is gone. The objects of the stack stay in its cluster until you `destroy` it."
    return Report(stack, DANGEROUS, f"### {stack}: not declared any more\n\n{words}")


def _preview(
    tree: Tree, stack: str, config: Sequence[str], *options: str | Path, is_accepted: bool = False
) -> subprocess.CompletedProcess[str]:
    """A preview. Neither policies nor slurmctld judge what is accepted: an older state may be refused by newer ones."""
    given = [part for each in config for part in ("--config", each)]
    arguments = ["preview", "--stack", stack, "--root", tree.root, *given, *options]
    # A checkout of Slipway runs its own code, every other project that of this process.
    program = ["-m", package_of(tree.root)] if _is_checkout(tree.root) else ["-P", "-c", _RUN, str(_HERE.parent), _PACKAGE]
    variables = {**os.environ, "NO_COLOR": "1", **(dict.fromkeys((POLICIES, CHECK), "off") if is_accepted else {})}
    variables.pop("FORCE_COLOR", None)
    return subprocess.run([tree.python, *program, *arguments], cwd=tree.root, env=variables, capture_output=True, text=True, check=False)


def package_of(root: Path) -> str:
    """Commits before 0.2.0 have the package `standalone`, with the same options."""
    return _PACKAGE if (root / _PACKAGE).is_dir() else "standalone"


def _is_checkout(root: Path) -> bool:
    """True of a checkout of Slipway: its stacks are planned with its own code."""
    return (root / "components" / "cluster.py").exists()


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """What a process said before it failed, without the mark of an error."""
    return (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").removeprefix("✗").strip()


def _merge_base(root: Path, base: str) -> str:
    """The commit at which the working tree's branch left the base. Raises SlipwayError with what to fetch."""
    done = _git(root, "merge-base", base, "HEAD")
    if done.returncode == 0:
        return done.stdout.strip()
    reason = done.stderr.strip() or "they have no common history"
    remedy = "Fetch it with its history (GitHub's checkout: `fetch-depth: 0`), or name another commit with --base."
    raise SlipwayError(f"{root}: git finds no common commit of {base} and HEAD: {reason}.\n{remedy}")


@contextlib.contextmanager
def _worktree(root: Path, commit: str) -> Generator[Path]:
    """The project as it was at a commit, for as long as it is needed."""
    inside = _git(root, "rev-parse", "--show-prefix").stdout.strip()
    with tempfile.TemporaryDirectory(prefix="slipway-ci-") as folder:
        top = Path(folder) / "base"
        added = _git(root, "worktree", "add", "--detach", "--quiet", str(top), commit)
        if added.returncode:
            raise SlipwayError(f"{root}: commit {commit[:7]} cannot be checked out: {added.stderr.strip()}")
        try:
            yield top / inside
        finally:
            _git(root, "worktree", "remove", "--force", str(top))
            if sys.pycache_prefix is not None:  # the commit's bytecode, which nobody could use again
                shutil.rmtree(f"{sys.pycache_prefix}{Path(folder).resolve()}", ignore_errors=True)


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SlipwayError("git is not installed, and CI compares two commits. Install git.") from error


def _base(here: Tree, folder: Path, name: str) -> Base:
    """The base, with the Python that has its packages: that of the working tree where both ask for the same."""
    if not folder.is_dir():
        return Base(name, None, "The project is not there, so all is new.")
    kept = here.root / _KEPT
    if kept.exists() and not (folder / _KEPT).exists():
        (folder / _KEPT).symlink_to(kept)
    if wanted(folder) == wanted(here.root):
        return Base(name, Tree(folder, here.python))
    environment = folder.parent / f"{folder.name}-packages"
    try:
        return Base(name, Tree(folder, _environment(environment, folder)))
    except subprocess.CalledProcessError as error:
        said = str(error.stderr or error.stdout or error).strip().splitlines()[-1:]
        return Base(name, None, f"Its requirements could not be installed, so all resources look new: {' '.join(said)}")


def wanted(root: Path) -> Mapping[str, bytes]:
    """What a project asks for: its requirements, and the files in it that they name. Empty for a project without a list of them."""
    listed = root / _REQUIREMENTS
    if not listed.exists() or _is_checkout(root):
        return {}  # a checkout's own code runs with the packages that are there
    text = listed.read_text()
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    files = {line: root / line for line in lines if line.startswith(".")}
    return {_REQUIREMENTS: text.encode(), **{line: file.read_bytes() if file.is_file() else b"" for line, file in files.items()}}


def _environment(folder: Path, root: Path) -> Path:
    """A virtual environment with a project's requirements; its Python. Raises CalledProcessError."""
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", folder],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", _REQUIREMENTS],
    ):
        subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return python
