"""`slipway ci`: checks every stack of a repository, and compares the working tree with a base commit or the cluster.

It needs git and the project's packages; without --live, neither a cluster nor credentials. Each plan is made by its own process in the
files of its commit. The base commit is in a git worktree, and has its own packages if its requirements differ.
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
_STATE_FOLDER = ".slipway"
"""Files of commands beside a project, not in git, for instance the key that `make up` creates."""
_RUN = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
"""Runs a package of a folder that is not on the import path. -P keeps the project's folder off the path until its program runs."""
_PACKAGE = "cli"
_CODES = (NOTHING, CHANGES, DANGEROUS)


@dataclass(frozen=True)
class Tree:
    """A state of the project: its folder, and the Python with its packages."""

    root: Path
    python: Path


@dataclass(frozen=True)
class Base:
    """The state that the working tree is compared with. If there is no tree, `reason` says why."""

    name: str
    tree: Tree | None
    reason: str = ""


def run(root: Path, base: str, stacks: Sequence[str], config: Sequence[str], output: Path, is_live: bool) -> int:
    """Checks and compares all stacks, writes `plan.md` (`live.md`) to the folder `output`, prints it, and returns the exit code.

    Raises SlipwayError if there is no git repository, no such commit or no stack.
    """
    tree, output = Tree(root.resolve(), Path(sys.executable)), output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    names = list(stacks) or stacks_in(tree.root)
    if not names:
        raise SlipwayError(f"{tree.root}: there is no Pulumi.<stack>.yaml. Run this in the folder of the project, or give --root.")
    if is_live:
        reports = [_live(tree, stack, config, output) for stack in names]
        compared = "Compared with the cluster, which says what becomes of its jobs."
    else:
        commit = _merge_base(tree.root, base)
        with _worktree(tree.root, commit) as folder:
            base_state = _base(tree, folder, f"{base} ({commit[:7]})")
            reports = [_planned(base_state, tree, stack, config, output) for stack in names]
            removed_stacks = [] if stacks else [stack for stack in stacks_in(folder) if stack not in names]
        reports += [*lint(tree.root), *(_removed_stack(stack) for stack in removed_stacks)]
        compared = f"Compared with {base_state.name}, without a cluster."
        compared += f" {base_state.reason}" if base_state.reason else ""
    text = render(compared, reports)
    (output / ("live.md" if is_live else "plan.md")).write_text(text)
    sys.stdout.write(text)
    return exit_code(reports)


def stacks_in(root: Path) -> list[str]:
    """The stacks of a project, by the names of its files."""
    matches = (re.fullmatch(r"Pulumi\.([A-Za-z0-9_.-]+)\.yaml", path.name) for path in root.glob("Pulumi.*.yaml"))
    return sorted(match.group(1) for match in matches if match)


def lint(root: Path) -> list[Report]:
    """A report of the project's Python files that cannot be parsed, imported or not. No report if there are none."""
    output = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py").stdout
    mistakes_found: list[str] = []
    for name in sorted(set(filter(None, output.split("\0")))):
        file = root / name
        try:
            if file.is_file():
                ast.parse(file.read_bytes(), name)
        except SyntaxError as error:
            mistakes_found.append(f"{name}:{error.lineno}: {error.msg}")
        except ValueError as error:  # a null byte
            mistakes_found.append(f"{name}: {error}")
    return [mistakes("Python files", "\n".join(mistakes_found))] if mistakes_found else []


def _live(here: Tree, stack: str, config: Sequence[str], output: Path) -> Report:
    story = output / f"{stack}.live.md"
    files = ["--markdown", story, "--json", output / f"{stack}.live.json"]
    result = _preview(here, stack, config, "--require-cluster", *files, "--exit-code")
    return _report(stack, result, story, result.stdout)


def _planned(base: Base, tree: Tree, stack: str, config: Sequence[str], output: Path) -> Report:
    """The report of a stack: its mistakes, its policies and the comparison with the base."""
    base_plan, story = output / f"{stack}.base.json", output / f"{stack}.md"
    against, note = ["--against", base_plan], ""
    if base.tree is None or not (base.tree.root / f"Pulumi.{stack}.yaml").exists():
        base_plan.write_text('{"resources": []}\n')
    elif (recorded := _preview(base.tree, stack, config, "--offline", "--json", base_plan, is_accepted=True)).returncode:
        base_plan.write_text('{"resources": []}\n')
        note = f"{base.name} itself has mistakes, so all resources look new:\n\n{block(_error_output(recorded))}"
    result = _preview(tree, stack, config, "--offline", *against, "--markdown", story, "--json", output / f"{stack}.json", "--exit-code")
    report = _report(stack, result, story, result.stdout.replace(str(base_plan), base.name))
    return Report(stack, report.code, "\n\n".join(part for part in (report.text, note) if part))


def _report(stack: str, result: subprocess.CompletedProcess[str], story: Path, shown: str) -> Report:
    """The report of a preview: its story, and its whole output if something changes."""
    if result.returncode not in _CODES:
        return mistakes(stack, _error_output(result))
    details = folded("The whole preview: objects, and files line by line", shown)
    return Report(stack, result.returncode, story.read_text() + (f"\n{details}" if result.returncode != NOTHING else ""))


def _removed_stack(stack: str) -> Report:
    message = f"Pulumi.{stack}.yaml is gone. The objects of the stack stay in its cluster until you `destroy` it."
    return Report(stack, DANGEROUS, f"### {stack}: no longer declared\n\n{message}")


def _preview(
    tree: Tree, stack: str, config: Sequence[str], *options: str | Path, is_accepted: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs a preview. An accepted state is checked neither by policies nor by slurmctld, as newer ones may refuse an older state."""
    config_options = [part for setting in config for part in ("--config", setting)]
    arguments = ["preview", "--stack", stack, "--root", tree.root, *config_options, *options]
    # A checkout of Slipway runs its own code; every other project runs the code of this process.
    program = ["-m", package_of(tree.root)] if _is_checkout(tree.root) else ["-P", "-c", _RUN, str(_HERE.parent), _PACKAGE]
    variables = {**os.environ, "NO_COLOR": "1", **(dict.fromkeys((POLICIES, CHECK), "off") if is_accepted else {})}
    variables.pop("FORCE_COLOR", None)
    return subprocess.run([tree.python, *program, *arguments], cwd=tree.root, env=variables, capture_output=True, text=True, check=False)


def package_of(root: Path) -> str:
    """The package of the command: `standalone`, with the same options, in commits before 0.2.0."""
    return _PACKAGE if (root / _PACKAGE).is_dir() else "standalone"


def _is_checkout(root: Path) -> bool:
    """True for a checkout of Slipway, whose stacks are planned with its own code."""
    return (root / "components" / "cluster.py").exists()


def _error_output(result: subprocess.CompletedProcess[str]) -> str:
    """The output of a failed process, without the cross."""
    return (result.stderr.strip() or result.stdout.strip() or f"exit code {result.returncode}").removeprefix("✗").strip()


def _merge_base(root: Path, base: str) -> str:
    """The commit at which the branch left the base. Raises SlipwayError."""
    result = _git(root, "merge-base", base, "HEAD")
    if result.returncode == 0:
        return result.stdout.strip()
    reason = result.stderr.strip() or "they have no common history"
    remedy = "Fetch it with its history (GitHub's checkout: `fetch-depth: 0`), or name another commit with --base."
    raise SlipwayError(f"{root}: git finds no common commit of {base} and HEAD: {reason}.\n{remedy}")


@contextlib.contextmanager
def _worktree(root: Path, commit: str) -> Generator[Path]:
    """The project as of a commit, in a temporary git worktree."""
    subfolder = _git(root, "rev-parse", "--show-prefix").stdout.strip()
    with tempfile.TemporaryDirectory(prefix="slipway-ci-") as folder:
        top = Path(folder) / "base"
        result = _git(root, "worktree", "add", "--detach", "--quiet", str(top), commit)
        if result.returncode:
            raise SlipwayError(f"{root}: commit {commit[:7]} cannot be checked out: {result.stderr.strip()}")
        try:
            yield top / subfolder
        finally:
            _git(root, "worktree", "remove", "--force", str(top))
            if sys.pycache_prefix is not None:  # the commit's bytecode is useless now
                shutil.rmtree(f"{sys.pycache_prefix}{Path(folder).resolve()}", ignore_errors=True)


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SlipwayError("git is not installed, and `slipway ci` needs it to compare two commits. Install git.") from error


def _base(tree: Tree, folder: Path, name: str) -> Base:
    """The base, with the working tree's Python if both have the same requirements, else with its own."""
    if not folder.is_dir():
        return Base(name, None, "The project does not exist there, so all resources look new.")
    state_folder = tree.root / _STATE_FOLDER
    if state_folder.exists() and not (folder / _STATE_FOLDER).exists():
        (folder / _STATE_FOLDER).symlink_to(state_folder)
    if wanted(folder) == wanted(tree.root):
        return Base(name, Tree(folder, tree.python))
    environment = folder.parent / f"{folder.name}-packages"
    try:
        return Base(name, Tree(folder, _environment(environment, folder)))
    except subprocess.CalledProcessError as error:
        last_line = str(error.stderr or error.stdout or error).strip().splitlines()[-1:]
        return Base(name, None, f"Its requirements could not be installed, so all resources look new: {' '.join(last_line)}")


def wanted(root: Path) -> Mapping[str, bytes]:
    """The project's requirements, and the local files that they name. Empty without a requirements file."""
    requirements = root / _REQUIREMENTS
    if not requirements.exists() or _is_checkout(root):
        return {}  # a checkout's own code runs with the installed packages
    text = requirements.read_text()
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    files = {line: root / line for line in lines if line.startswith(".")}
    return {_REQUIREMENTS: text.encode(), **{line: file.read_bytes() if file.is_file() else b"" for line, file in files.items()}}


def _environment(folder: Path, root: Path) -> Path:
    """Creates a virtual environment with a project's requirements and returns its Python. Raises CalledProcessError."""
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", folder],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", _REQUIREMENTS],
    ):
        subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return python
