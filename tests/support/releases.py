"""The plans of earlier releases, kept under tests/golden/releases: read them, and keep a further one.

    python -m tests.support.releases 0.2.0             # of this checkout, when version 0.2.0 is released
    python -m tests.support.releases 2026-11-21 4f1413 # of a commit

A release is a folder: the stack files as they were, the plan of each as JSON (compressed), and rolls.txt, which the test of upgrades
writes. Left out of a plan is what stands in the repository as it is: scripts and kinds.
"""

import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.support.configs.stacks import EXAMPLES
from tests.support.project import KEY, ROOT

KEPT = ROOT / "tests" / "golden" / "releases"
LEFT_OUT = "<as in the repository>"


def releases() -> list[str]:
    """The kept releases by name, the newest last: first those named by their day, then those named by their version."""
    names = (folder.name for folder in KEPT.iterdir())
    return sorted(names, key=lambda name: ("." in name, [int(part) for part in re.split("[.-]", name)]))


def stack_file(release: str, stack: str) -> Path:
    """A stack file as it was at a release."""
    return KEPT / release / f"Pulumi.{stack}.yaml"


def keys(file: Path) -> list[str]:
    """Overrides that give the users of a stack file a key that does not depend on the machine, where they have one in a file."""
    users = yaml.safe_load(file.read_text())["config"]["slipway:cluster"]["login"].get("users", [])
    with_files = [f"cluster.login.users[{at}]." for at, user in enumerate(users) if "sshKeyFiles" in user]
    return [user + given for user in with_files for given in ("sshKeyFiles=[]", f'sshKeys=["{KEY}"]')]


def kept_plan(release: str, stack: str) -> dict[str, Any]:
    """A plan as it was at a release."""
    return json.loads(gzip.decompress((KEPT / release / f"{stack}.json.gz").read_bytes()))


def without_sources(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan without the text of scripts and kinds: the names of scripts follow their content, and kinds are compared by other tests."""
    return {**plan, "resources": [_without_sources(each) for each in plan["resources"]]}


def _without_sources(resource: dict[str, Any]) -> dict[str, Any]:
    inputs = resource["inputs"]
    if resource["type"].endswith(":CustomResourceDefinition"):
        inputs = {key: value for key, value in inputs.items() if key != "spec"}
    elif resource["type"].endswith(":ConfigMap") and inputs.get("immutable"):
        inputs = {**inputs, "data": dict.fromkeys(inputs["data"], LEFT_OUT)}
    return {**resource, "inputs": inputs}


def keep(release: str, root: Path) -> None:
    """Writes the stack files of a checkout, and the plans that its own code makes of them, under the release's name."""
    folder = KEPT / release
    folder.mkdir(parents=True)
    for stack in EXAMPLES:
        stack_file(release, stack).write_bytes((root / f"Pulumi.{stack}.yaml").read_bytes())
        plan = without_sources(_recorded(root, stack))
        text = json.dumps({key: plan[key] for key in ("project", "stack", "outputs", "resources")}, indent=1, sort_keys=True)
        (folder / f"{stack}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _recorded(root: Path, stack: str) -> dict[str, Any]:
    """The plan that the code in `root` makes; each `-m` takes the packages of the folder that it is started in."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        options = [part for key in keys(root / f"Pulumi.{stack}.yaml") for part in ("--config", key)]
        command = [sys.executable, "-m", "cli", "preview", "--offline", "--stack", stack, "--json", file, *options]
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text())


def main(release: str, commit: str = "") -> None:
    """Keeps the plans of a commit, or of this checkout."""
    if not commit:
        keep(release, ROOT)
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, commit], cwd=ROOT, check=True)
        try:
            keep(release, Path(folder))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
