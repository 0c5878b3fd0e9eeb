"""How long prologs may take, by the configuration that slurmctld runs with."""

import pytest

from configs.render import health_checks
from slurm.prologs import CHECKS, GPU_JOBS, longest_s
from tests.support.configs.stacks import cluster

CONTAIN = {"PrologFlags": "Alloc,Contain"}
OURS = CONTAIN | {"Prolog[0]": CHECKS, "Prolog[1]": GPU_JOBS, "PrologEpilogTimeout": "65534"}
CHECKED = [
    {"name": "mounts", "check": "mounts", "contexts": ["interval", "prolog"], "nodeSets": ["cpu"], "timeoutS": 30},
    {"name": "disk", "check": "disk", "contexts": ["prolog"], "nodeSets": ["gpu"], "timeoutS": 40},
    {"name": "kernel", "check": "kernel", "contexts": ["interval"], "nodeSets": ["gpu"], "timeoutS": 90},
]


def script() -> str:
    """The script of three checks, of which two run before jobs."""
    return health_checks.render(cluster("dev", {"healthChecks": CHECKED}))[CHECKS]


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        pytest.param(CONTAIN | {"Prolog": "(null)", "PrologEpilogTimeout": "65534"}, 0, id="none"),
        pytest.param({"Prolog": "(null)", "PrologFlags": "Alloc"}, None, id="no extern step"),
        pytest.param(OURS, 40, id="Slipway's own"),
        pytest.param(OURS | {"PrologTimeout": "20"}, 40, id="Slurm's limit for each of two"),
        pytest.param(CONTAIN | {"Prolog[0]": "/shared/mine.sh", "PrologEpilogTimeout": "65534"}, None, id="another's"),
        pytest.param(CONTAIN | {"Prolog[0]": "/shared/mine.sh", "PrologEpilogTimeout": "60"}, 60, id="another's, limited as an epilog"),
        pytest.param(CONTAIN | {"Prolog": "a", "PrologTimeout": "300 sec", "PrologEpilogTimeout": "60"}, 300, id="limited by itself"),
        pytest.param(CONTAIN | {"Prolog": "/shared/*.sh", "PrologTimeout": "300"}, None, id="nobody knows how many"),
        pytest.param(OURS | {"Prolog[2]": "mine.sh"}, None, id="another's beside Slipway's"),
    ],
)
def test_prologs_take_no_longer_than_their_limits(config: dict[str, str], longest: float | None) -> None:
    assert longest_s(config, script()) == longest


@pytest.mark.parametrize("text", ["", "#!/bin/sh\n", "<<'END'\n{\nEND\n", "<<'END'\n[]\nEND\n"])
def test_script_that_cannot_be_read_limits_nothing(text: str) -> None:
    assert longest_s(OURS, text) is None
