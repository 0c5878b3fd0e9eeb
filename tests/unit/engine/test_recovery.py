"""Values read back from live Secrets: every shape that a program gives them, and a refusal for what cannot be read."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import random_values, recovery
from engine.faults import SlipwayError
from engine.plan import Plan, Resource
from engine.render import Key, own_documents
from tests.support.engine.recorded import Recorder

BYTES, PASSWORD = "random:index/randomBytes:RandomBytes", "random:index/randomPassword:RandomPassword"
KEEPER = Key("", "Secret", "slurm", "kept-random")
SECRET = Key("", "Secret", "slurm", "munge")


def pem(value: bytes) -> bytes:
    body = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + value)
    return b"-----BEGIN PRIVATE KEY-----\n" + body + b"\n-----END PRIVATE KEY-----\n"


SHAPES: Mapping[str, Callable[[bytes], bytes]] = {
    "as-it-is": lambda value: value,
    "base64-inside": lambda value: b'{"key": "' + base64.b64encode(value) + b'"}',
    "hex": lambda value: value.hex().encode(),
    "between-other-text": lambda value: b"StoragePass=" + value + b"\nStorageUser=slurm\n",
    "seed-of-a-host-key": pem,
}


def program(shape: Callable[[bytes], bytes], length: int = 32, type_: str = BYTES) -> tuple[str, Callable[[bytes | None], Plan]]:
    """A program with one random value and one Secret made from it: the value's key, and its plan with a value (or its stand-in)."""
    inputs: dict[str, Any] = {"length": length}
    key = random_values.key(type_, "key", inputs)
    random = Resource("urn:key", type_, "key", inputs=inputs)

    def plan(value: bytes | None) -> Plan:
        used = value if value is not None else random_values.make(type_, inputs, random_values.placeholder(key))
        about = {"name": SECRET.name, "namespace": SECRET.namespace}
        data = {"other": base64.b64encode(b"the same").decode(), "entry": base64.b64encode(shape(used)).decode()}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}
        secret = Resource("urn:secret", "kubernetes:core/v1:Secret", "munge", inputs=manifest, dependencies=("urn:key",))
        return Plan("slipway", "dev", (random, secret), {})

    return key, plan


@pytest.mark.parametrize("shape", [pytest.param(shape, id=name) for name, shape in SHAPES.items()])
@given(value=st.binary(min_size=32, max_size=32))
def test_a_value_is_read_back_from_the_live_secret(shape: Callable[[bytes], bytes], value: bytes) -> None:
    key, plan = program(shape)
    lost = recovery.plan_recovery(plan(None), {SECRET: {"entry": shape(value), "other": b"the same"}})
    assert lost.values == {key: value}
    recovery.refuse_unread(lost, own_documents(plan(lost.values[key])), KEEPER)
    assert "entry of Secret slurm/munge" in recovery.explained(lost, KEEPER)[0]
    assert value.hex() not in recovery.explained(lost, KEEPER)[0]


def test_a_password_is_read_back_as_text() -> None:
    key, plan = program(lambda value: value, 40, PASSWORD)
    lost = recovery.plan_recovery(plan(None), {SECRET: {"entry": b"x" * 40}})
    assert lost.values == {key: b"x" * 40}


def test_a_value_behind_a_hash_is_refused_with_the_secret_and_a_remedy() -> None:
    _, plan = program(lambda value: base64.b16encode(bytes(sum(value[at::4]) % 256 for at in range(4))))
    lost = recovery.plan_recovery(plan(None), {SECRET: {"entry": b"DEADBEEF"}})
    assert lost.values == {}
    with pytest.raises(SlipwayError, match="Nothing was changed") as raised:
        recovery.refuse_unread(lost, (), KEEPER)
    said = str(raised.value)
    assert "RandomBytes key: Secret slurm/munge" in said
    assert f"Restore {KEEPER} from a backup" in said


def test_a_reading_that_does_not_make_the_live_secret_again_is_refused() -> None:
    key, plan = program(SHAPES["as-it-is"])
    lost = recovery.plan_recovery(plan(None), {SECRET: {"entry": b"v" * 32}})
    with pytest.raises(SlipwayError, match="entry of Secret slurm/munge"):
        recovery.refuse_unread(replace(lost, values={key: b"w" * 32}), own_documents(plan(b"w" * 32)), KEEPER)


def test_two_live_secrets_that_disagree_are_refused() -> None:
    _, plan = program(SHAPES["as-it-is"])
    single = plan(None)
    second = replace(
        single.resources[1], urn="urn:b", inputs={**single.resources[1].inputs, "metadata": {"name": "b", "namespace": "slurm"}}
    )
    both = replace(single, resources=(*single.resources, second))
    other = Key("", "Secret", "slurm", "b")
    lost = recovery.plan_recovery(both, {SECRET: {"entry": b"v" * 32}, other: {"entry": b"w" * 32}})
    with pytest.raises(SlipwayError, match="RandomBytes key: Secret slurm/b, Secret slurm/munge"):
        recovery.refuse_unread(lost, (), KEEPER)


def test_a_key_that_its_secret_keeps_whatever_is_declared_needs_no_value() -> None:
    """A key of bytes from an older version, where the program makes text now."""
    key, plan = program(SHAPES["as-it-is"], 64, PASSWORD)
    random, secret = plan(None).resources
    live = {SECRET: {"entry": bytes(range(256)) * 4}}
    kept = Plan("slipway", "dev", (random, replace(secret, options={"ignoreChanges": ["data"]})), {})
    recovery.refuse_unread(recovery.plan_recovery(kept, live), own_documents(kept), KEEPER)
    assert key not in recovery.plan_recovery(kept, live).values
    with pytest.raises(SlipwayError, match="RandomPassword key"):
        recovery.refuse_unread(recovery.plan_recovery(plan(None), live), (), KEEPER)


def test_nothing_is_read_where_no_secret_is_live(recorded: Recorder) -> None:
    lost = recovery.plan_recovery(recorded(), {})
    assert (lost.values, lost.unread) == ({}, {})
    assert recovery.explained(lost, KEEPER) == []
    recovery.refuse_unread(lost, (), KEEPER)
