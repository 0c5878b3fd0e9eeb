"""The real program recorded for both example stacks, once each, with users' keys that do not depend on the machine."""

import functools
from pathlib import Path

import pytest

from standalone import project, record
from standalone.plan import Plan

ROOT = Path(__file__).parents[2]
STACKS = ("dev", "h100")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g alice@example.com"
KEYS = tuple(f"cluster.login.users[{at}].{said}" for at in range(2) for said in ("sshKeyFiles=[]", f'sshKeys=["{KEY}"]'))
"""Instead of those in files, of the first users."""


@functools.cache
def plan_of(stack: str, *overrides: str) -> Plan:
    """The plan of an example stack, with further `KEY.PATH=VALUE`."""
    return record.record(project.load(ROOT, stack, (*KEYS, *overrides))).plan


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    """Each example stack in turn."""
    return str(request.param)


@pytest.fixture
def plan(stack: str) -> Plan:
    """The plan of each example stack in turn."""
    return plan_of(stack)
