"""Runs the real stack file under Pulumi's own mocks and writes down what it registers. Nothing of ours between program and record."""

import asyncio
import contextlib
import json
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pulumi
import yaml
from google.protobuf import struct_pb2
from pulumi.runtime import mocks, set_all_config, set_mocks
from pulumi.runtime.stack import run_pulumi_func

ROOT = Path(__file__).parents[3]
DRAWN = "drawn".ljust(32, "0")
"""What every random value is."""


@dataclass(frozen=True)
class Registered:
    """One resource as the program registered it. `inputs` are as they went over the wire: a secret is an object with a mark."""

    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    protect: bool
    retained: bool
    provider: str
    dependencies: frozenset[str]
    secret_outputs: frozenset[str]
    inputs: Mapping[str, Any]


def stack_config(stack: str) -> dict[str, Any]:
    """The `slipway:cluster` object of an example stack."""
    return yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]["slipway:cluster"]


def run(stack: str, config: Mapping[str, Any]) -> list[Registered]:
    """What `__main__.py` registers for a config, in order. Raises what the program raises."""
    monitor = Monitor()
    # Before the mocks: they make the root resource at once, and what it promises belongs to the loop of that moment.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        set_mocks(monitor.mocks, project="slipway", stack=stack, preview=False, monitor=monitor)
        set_all_config({"slipway:cluster": json.dumps(config)})
        loop.run_until_complete(run_pulumi_func(_program))
    finally:
        loop.close()
        asyncio.set_event_loop(None)
        pulumi.runtime.reset_options()
    return monitor.registered


def _program() -> None:
    with contextlib.chdir(ROOT):  # the project's folder, where the Pulumi CLI runs it
        runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


class _Mocks(mocks.Mocks):
    """A provider that answers with what it was given, and makes up random values."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        made: dict[str, Any] = {}
        if args.typ == "kubernetes:helm.sh/v3:Release":
            made = {"status": {"status": "deployed"}}
        if args.typ == "random:index/randomPassword:RandomPassword":
            made = {"result": DRAWN}
        given = cast(dict[str, Any], args.inputs)  # pyright: ignore[reportUnknownMemberType]
        return f"{args.name}-id", {**given, **made}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"the program reads {args.token} back from a provider")


class Monitor(mocks.MockMonitor):
    """Pulumi's mock of the engine's monitor, which writes down what is registered."""

    def __init__(self) -> None:
        super().__init__(_Mocks())
        self.registered: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        answer: Any = super().RegisterResource(request)  # pyright: ignore[reportUnknownMemberType]
        if request.type != "pulumi:pulumi:Stack":
            self.registered.append(
                Registered(
                    urn=answer.urn,
                    type=request.type,
                    name=request.name,
                    parent=request.parent,
                    custom=request.custom,
                    protect=request.protect,
                    retained=request.retainOnDelete,
                    provider=request.provider,
                    dependencies=frozenset(request.dependencies),
                    secret_outputs=frozenset(request.additionalSecretOutputs),
                    inputs=_plain(request.object),
                )
            )
        return answer


def _plain(value: Any) -> Any:
    if isinstance(value, struct_pb2.Struct):
        return {key: _plain(cast(Any, value)[key]) for key in value.fields}
    if isinstance(value, struct_pb2.ListValue):
        return [_plain(one) for one in cast(Any, value)]
    return value
