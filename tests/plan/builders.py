"""What a config declares, from the builders alone: no engine, no monitor, nothing awaited. A part or an object that is the same as in the
config before is not made again. For tests only."""

import asyncio
import contextlib
import copy
import functools
import json
import re
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pulumi

from components import cluster
from components.kinds import build_crds
from components.objects import declare
from configs import images
from configs.models.cluster import Cluster
from configs.render.dashboards import build_dashboards
from configs.yaml_text import parse_yaml

_LATER = "known after up"
_READ_TEXT = Path.read_text
_REFERENCE, _CRDS, _DASHBOARDS = functools.cache(images.reference), functools.cache(build_crds), functools.cache(build_dashboards)
"""What no key changes."""
_BUILD_PROGRAMS = cluster.build_programs


@dataclass(frozen=True)
class Declared:
    """A resource with its inputs as the builders gave them, and what its options say of changes and deletion."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    ignored: tuple[str, ...]
    stays: tuple[bool | None, bool | None]
    """Its `protect` and `retainOnDelete`."""


Declare = Callable[[Cluster], dict[tuple[str, str], Declared]]


@contextlib.contextmanager
def declaring() -> Generator[Declare]:
    """A function that gives all resources of a loaded config, by type and name."""
    made: list[Declared] = []
    parts: dict[str, tuple[Any, Any, list[Declared]]] = {}
    """By name: the arguments, the component or object, and its resources."""

    def resource(self: Any, type_: str, name: str, props: Any = None, opts: Any = None, *_: Any, **__: Any) -> None:
        self.__dict__.update(_name=name, _type=type_, urn=pulumi.Output.from_input(_LATER), id=pulumi.Output.from_input(_LATER))
        options = opts or pulumi.ResourceOptions()
        given = cast(dict[str, Any], props if isinstance(props, dict) else vars(props) if props else {})
        ignored = tuple(options.ignore_changes or ())
        inputs = {_camel(key): value for key, value in _plain(given).items()}
        if type_.startswith("aws:"):
            inputs = _all_camel(inputs)
        made.append(Declared(type_, name, inputs, ignored, (options.protect, options.retain_on_delete)))

    def component(self: Any, type_: str, name: str, *_: Any, **__: Any) -> None:
        self.__dict__.update(_name=name, _type=type_, urn=pulumi.Output.from_input(_LATER))

    def part(kind: Callable[..., Any], name: str, *given: Any) -> Any:
        """As a component's class is called: with its arguments, and the options last."""
        *args, _opts = given
        known = parts.get(name)
        if known is not None and known[0] == args:
            made.extend(known[2])
            return known[1]
        start = len(made)
        built = kind(name, *given)
        parts[name] = args, built, made[start:]
        return built

    def object_(manifest: Any, opts: pulumi.ResourceOptions, name: str | None = None) -> Any:
        told = manifest, name, opts.protect, opts.retain_on_delete, opts.ignore_changes
        return part(lambda *_: declare(manifest, opts, name), manifest["metadata"]["name"] + manifest["kind"], told, opts)

    def declared(config: Cluster) -> dict[tuple[str, str], Declared]:
        made.clear()
        cluster.SlurmCluster("cluster", cast(Any, config), None)
        return {(each.type, each.name): each for each in made}

    parts_of_cluster = {
        name: functools.partial(part, value)
        for name, value in vars(cluster).items()
        if isinstance(value, type) and issubclass(value, pulumi.ComponentResource) and value is not cluster.SlurmCluster
    }
    declaring_modules = [
        each for name, each in sys.modules.items() if name.startswith("components.") and vars(each).get("declare") is declare
    ]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    later = pulumi.Output.from_input(_LATER)
    try:
        with (
            contextlib.ExitStack() as patches,
            mock.patch.object(pulumi.CustomResource, "__init__", resource),
            mock.patch.object(pulumi.ProviderResource, "__init__", resource),
            mock.patch.object(pulumi.ComponentResource, "__init__", component),
            mock.patch.object(pulumi.ComponentResource, "register_outputs"),
            mock.patch.dict(vars(cluster), parts_of_cluster),
            mock.patch.object(cluster, "load_cluster", _as_it_is),
            mock.patch.object(cluster, "build_programs", _build_programs),
            mock.patch("components.api_programs.parse_yaml", _parsed),
            mock.patch("configs.render.alerts.parse_yaml", _parsed),
            mock.patch("configs.images.reference", _REFERENCE),
            mock.patch("components.kinds.build_crds", _CRDS),
            mock.patch("components.observability.build_dashboards", _DASHBOARDS),
            mock.patch("components.observability._yaml", json.dumps),
            mock.patch.object(Path, "read_text", _read),
            mock.patch("components.cluster.build_deployed", return_value=[]),
            mock.patch("pulumi.get", return_value=later),
            mock.patch("pulumi.create_urn", return_value=later),
        ):
            for module in declaring_modules:
                patches.enter_context(mock.patch.object(module, "declare", object_))
            yield declared
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        pulumi.runtime.reset_options()  # what these Outputs promised is nobody's to wait for


def _as_it_is(config: Cluster, *_: Any) -> Cluster:
    return config


_programs: dict[tuple[str, str, str], Any] = {}


def _build_programs(config: Cluster, component: str, folder: Path) -> Any:
    """Programs of pods, which change with names alone."""
    key = config.name, config.namespace, component
    if key not in _programs:
        _programs[key] = _BUILD_PROGRAMS(config, component, folder)
    return _programs[key]


@functools.cache
def _loaded(text: str) -> Any:
    return parse_yaml(text)


@functools.cache
def _read(path: Path, *given: Any, **named: Any) -> str:
    return _READ_TEXT(path, *given, **named)


def _parsed(text: str) -> Any:
    """Tables of rights and rules of alerts are parsed once."""
    return copy.deepcopy(_loaded(text))


def _camel(key: str) -> str:
    """`api_version` as an engine has it: `apiVersion`."""
    return re.sub("_([a-z])", lambda found: found[1].upper(), key)


def _all_camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {_camel(key): _all_camel(each) for key, each in cast(dict[str, Any], value).items()}
    return [_all_camel(each) for each in cast(list[Any], value)] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value as data that can be compared, without what is known later."""
    if isinstance(value, pulumi.Output):
        return _LATER
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast(list[Any], value)]
    return value if value is None or isinstance(value, str | int | float) else _plain(vars(value))
