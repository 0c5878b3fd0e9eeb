"""What the rendered script refuses follows the config: a mailer or a declared disk lifts a refusal. Real Slurm runs it elsewhere."""

from typing import Any

import pytest

from configs.render.slurm import REFUSALS, render
from tests.support.configs.stacks import cluster

ALL = {"--container", "--tmp"}
MAIL = "--mail-type has no effect"


@pytest.mark.parametrize(
    ("edits", "refused"),
    [
        pytest.param({}, ALL, id="default"),
        pytest.param({"nodeSets[0].slurmd": {"tmpdisk": "1000"}}, ALL - {"--tmp"}, id="disk-of-a-set"),
        pytest.param({"nodeSets[0].slurmd": {"TmpDisk": "0"}}, ALL, id="no-disk-said"),
        pytest.param({"slurm": {"raw": ["NodeName=old-1 TmpDisk=1000"]}}, ALL - {"--tmp"}, id="disk-of-a-raw-node"),
    ],
)
def test_only_what_would_be_ignored_is_refused(edits: dict[str, Any], refused: set[str]) -> None:
    files = render(cluster("dev", edits))
    for name in REFUSALS:
        assert {option for option in ALL if f'return "{option}: ' in files[name]} == refused


@pytest.mark.parametrize(
    ("edits", "is_warned"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"slurm": {"settings": {"mailprog": "/usr/bin/mail"}}}, False, id="mailer"),
        pytest.param({"slurm": {"settings": {"MailProg": "/bin/true"}}}, True, id="no-mailer-said"),
    ],
)
def test_mail_without_a_mailer_is_a_warning(edits: dict[str, Any], is_warned: bool) -> None:
    assert (MAIL in render(cluster("dev", edits))["job_submit.lua"]) == is_warned


def test_plugins_that_refuse_may_be_replaced() -> None:
    own = {"JobSubmitPlugins": "throttle", "CliFilterPlugins": "user_defaults"}
    conf = render(cluster("dev", {"slurm": {"settings": own}}))["slurm.conf"].splitlines()
    assert [line for line in conf if line.startswith(("JobSubmitPlugins", "CliFilterPlugins"))] == [
        "CliFilterPlugins=user_defaults",
        "JobSubmitPlugins=throttle",
    ]
