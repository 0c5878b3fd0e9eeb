"""Each name that crosses a border has one owner: names/. No other Python of the product spells it, and what cannot import it agrees."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from types import ModuleType

import pytest

from local import layout
from names import annotations, conditions, crds, finalizers, labels, paths, ports, variables, writers
from tests.support.project import ROOT

ROOMS = ("changes", "cli", "components", "configs", "controllers", "engine", "images", "policies", "programs", "provider", "slurm")
"""The rooms whose Python imports names/. `local` imports nothing of ours: it works without Slipway."""
EXCEPTIONS = {
    "configs/cluster_args.py": "generated from the models' docstrings",
    "configs/models/": "examples of a stack file are a user's own words",
    "programs/node_checks/beside.py": "each job pays for what is imported there",
    "programs/node_checks/meeting.py": "of a bundle, which runs where no package of ours is",
    "programs/node_checks/network.py": "likewise",
}
OTHER_NAMES = re.compile(r"SLIPWAY_[A-Z0-9_]+|slipway\.dev/[\w-]+")
OUTSIDE = {"SLIPWAY_CONTAINER_NAME": "a job's", "SLIPWAY_KUBECONFIG": "a secret of a project's CI", "SLIPWAY_MPI": "of SLURM_SLIPWAY_MPI"}
"""Names that only C or CI spells."""


def values(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name.isupper()}


@cache
def constants() -> tuple[tuple[str, int, object], ...]:
    """File, line and value of each constant in the product's Python: no docstrings, and an f-string in its constant parts."""
    listed = subprocess.run(["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [file for file in listed.stdout.split() if not file.startswith(tuple(EXCEPTIONS))]
    return tuple((file, line, value) for file in files for line, value in _constants(ast.parse((ROOT / file).read_text())))


def _constants(tree: ast.AST) -> Iterator[tuple[int, object]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Constant):
            yield node.lineno, node.value
        yield from _constants(node)


def spelled(pattern: str) -> list[tuple[str, int, str]]:
    found = re.compile(pattern)
    return [(file, line, value) for file, line, value in constants() if isinstance(value, str) and found.search(value)]


def test_constants_of_the_product_are_found() -> None:
    assert len(constants()) > 10_000


@pytest.mark.parametrize(
    "module", [labels, annotations, finalizers, conditions, crds, variables, paths, ports], ids=lambda each: each.__name__
)
def test_every_name_has_one_spelling(module: ModuleType) -> None:
    given = list(values(module).values())
    shared = {ports.EC2} if module is ports else set[int]()
    assert [value for value in set(given) if given.count(value) > 1] == list(shared)


def test_no_other_python_spells_a_name_of_kubernetes() -> None:
    """A stack file's own label, such as one of machines, may begin like ours."""
    assert spelled(r"slipway\.dev\b") == []
    keys = [value for value in values(labels).values() if not str(value).startswith("slipway.dev")]
    assert spelled("|".join(re.escape(str(key)) for key in keys)) == []
    managers = [value for value in values(writers).values() if value != writers.SLIPWAY]
    assert spelled(rf"^({'|'.join(re.escape(str(manager)) for manager in managers)})$") == []


def test_no_other_python_spells_an_environment_variable() -> None:
    assert spelled("SLIPWAY_[A-Z]") == []


def test_no_other_python_spells_a_path() -> None:
    assert spelled(rf"(?<![\w./-])({'|'.join(re.escape(str(path)) for path in values(paths).values())})(?![\w.-])") == []


def test_no_other_python_spells_a_port() -> None:
    numbers = set(values(ports).values())
    assert [(file, line, value) for file, line, value in constants() if type(value) is int and value in numbers] == []


def test_c_shell_and_templates_spell_names_that_there_are() -> None:
    known = {str(value) for module in (labels, annotations, finalizers, conditions, variables) for value in values(module).values()}
    suffixes = ("*.sh", "*.c", "*.h", "*.j2", "*.yaml", "*Dockerfile", "*sshd_config*")
    listed = subprocess.run(
        ["git", "ls-files", *suffixes, ":!tests", ":!docs", ":!local", ":!Pulumi.*"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    named = {(file, name) for file in listed.stdout.split() for name in OTHER_NAMES.findall((ROOT / file).read_text())}
    named = {(file, name) for file, name in named if not name.endswith("_H")}  # include guards
    assert len(named) > 5
    assert sorted((file, name) for file, name in named if name not in known and name not in OUTSIDE) == []


def test_local_means_the_same_label_of_machines() -> None:
    assert layout.POOL_LABEL == labels.POOL


@pytest.mark.parametrize(
    ("file", "line"),
    [
        pytest.param("images/slurm/sshd_config", f"Port {ports.LOGIN_SSH}", id="sshd-of-logins"),
        pytest.param("images/slurm/root/bcast.c", f"EXPORTED in_port_t slipway_held_port = {ports.SLURMD};", id="held-port"),
        pytest.param("configs/render/templates/ganesha.conf.j2", f"NFS_Port = {ports.NFS};", id="ganesha"),
        pytest.param("configs/render/templates/slurm.conf.j2", f"AuthAltParameters=jwt_key={paths.JWT_KEY}", id="key-of-tokens"),
        pytest.param("images/slurm/root/conf.h", f'#define ROOT_CONF_PATH "{paths.ROOT_SETTINGS}/root.conf"', id="settings-of-the-root"),
        pytest.param("images/slurm/root/run.h", f'#define ROOT_ADDRESS "{paths.PLACE}/address"', id="place-in-the-topology"),
        pytest.param("images/slurm/root/mig.h", f'#define ROOT_MIG_LIST "{paths.MIG}"', id="instances-of-mig"),
        pytest.param("images/slurm/root/disk.h", f'#define ROOT_DISKS_PATH "{paths.JOB_DISKS}"', id="disks-of-jobs"),
        pytest.param("programs/start/mariadb.sh", f"password=$(<{paths.DATABASE_PASSWORD}/password)", id="password-of-the-database"),
        pytest.param("images/observability/alertmanager.sh", f"config=$(<{paths.PROMETHEUS}/alertmanager.yml)", id="alertmanager"),
        pytest.param("configs/render/templates/slipway-gpu-jobs.sh.j2", f"folder={paths.GPU_JOBS}", id="gpu-jobs"),
    ],
)
def test_what_cannot_import_agrees(file: str, line: str) -> None:
    assert line in [text.strip() for text in (ROOT / file).read_text().splitlines()]
