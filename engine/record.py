"""Runs the program as the Pulumi CLI would, with a monitor that records each registration and creates nothing.

A Kubernetes object returns its inputs and its name, a random resource its value; other outputs are unknown. Transforms, hooks and provider
functions need Pulumi's engine or a provider, so they are refused.
Source: pulumi.runtime.mocks and pulumi-language-python-exec; the URN and alias rules are Pulumi's.
"""

import asyncio
import contextlib
import contextvars
import hashlib
import json
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import rpc, set_all_config
from pulumi.runtime.mocks import MockMonitor, MockResourceArgs, Mocks, MockSettings
from pulumi.runtime.proto import engine_pb2, resource_pb2
from pulumi.runtime.settings import configure
from pulumi.runtime.stack import run_in_stack

from engine import random_values
from engine.faults import SlipwayError
from engine.plan import Plan, Resource, Secret, Unknown, revealed
from engine.project import Project

ValueOf = Callable[[str, tuple[str, ...], str, Mapping[str, Any]], bytes]
"""Returns the stored value of a random resource from its key, the keys of its aliases, its type and its inputs."""

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 (the SDK's published marker, not a secret)
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"


@dataclass(frozen=True)
class Recording:
    """The plan, and the warnings of the program."""

    plan: Plan
    messages: tuple[str, ...]


def placeholder_value(key: str, _aliases: tuple[str, ...], type_: str, inputs: Mapping[str, Any]) -> bytes:
    """A ValueOf for previews without a cluster: always the same stand-in."""
    return random_values.make(type_, inputs, random_values.placeholder(key))


def record(project: Project, value_of: ValueOf = placeholder_value, preview: bool = True) -> Recording:
    """Runs the program once and returns what it declared.

    Raises SlipwayError with the program's own message, and with file and line of the program unless it is a pulumi.RunError.
    """
    monitor = _Monitor(project, value_of, preview)
    contextvars.Context().run(_run, project, monitor, preview)
    if monitor.errors:
        raise SlipwayError("\n".join(monitor.errors))
    resources = tuple(sorted(monitor.recorded.values(), key=lambda resource: resource.urn))
    return Recording(Plan(project.name, project.stack, resources, monitor.outputs), tuple(monitor.messages))


def _run(project: Project, monitor: "_Monitor", preview: bool) -> None:
    settings: Any = MockSettings(
        monitor=monitor,
        monitor_features=set(cast(Any, monitor).GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures),
        engine=monitor,
        project=project.name,
        stack=project.stack,
        root_directory=str(project.root),
        organization="organization",
        dry_run=preview,
        legacy_apply_enabled=False,
        parallel=16,
        callbacks=None,
        outputs=set[Any](),
        lock=threading.Lock(),
        package_refs={},
        base_providers_by_ref={},
    )
    configure(settings)
    set_all_config(dict(project.config), [])
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_already_raised)
    try:
        with contextlib.chdir(project.program.parent), _first_on_path(project.program.parent):
            loop.run_until_complete(run_in_stack(lambda: _execute(project.program)))
    except (SlipwayError, KeyboardInterrupt):
        raise
    except pulumi.RunError as error:
        raise SlipwayError(_headed(str(error), project)) from error
    except BaseException as error:
        raise SlipwayError(_explained(error, project.program.parent)) from error
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(BaseException):
                loop.run_until_complete(task)
        loop.close()


def _headed(message: str, project: Project) -> str:
    """The message, headed by the file that was read (`--config-file`): the program knows only the name of its stack."""
    default_file = f"Pulumi.{project.stack}.yaml"
    file_name = project.file.name if project.file.parent == project.root else str(project.file)
    return file_name + message.removeprefix(default_file) if message.startswith(f"{default_file}: ") else message


def _already_raised(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Ignores errors of the tasks that a failed program leaves behind: their cause has been raised."""


def _execute(program: Path) -> None:
    if not program.exists():
        raise SlipwayError(f"{program}: the project's program does not exist.")
    runpy.run_path(str(program), run_name="__main__")


@contextlib.contextmanager
def _first_on_path(folder: Path) -> Generator[None]:
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _explained(error: BaseException, root: Path) -> str:
    """`file:line: message` of the innermost frame in the user's own files, not in the SDK's or Slipway's."""
    if isinstance(error, SystemExit):
        return f"The program ended with exit code {error.code}."
    program_folder, packages = str(root) + os.sep, (f"{os.sep}site-packages{os.sep}", str(Path(__file__).parent) + os.sep)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(program_folder)]
    frames = [frame for frame in frames if not any(part in frame.filename for part in packages)]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename.removeprefix(program_folder)}:{error.lineno}: {error.msg}"
    location = f"{frames[-1].filename.removeprefix(program_folder)}:{frames[-1].lineno}: " if frames else ""
    return f"{location}{type(error).__name__}: {error}"


class _NoMocks(Mocks):
    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        raise SlipwayError(f"{args.typ} {args.name} was registered in a way that is not supported; run `pulumi up`.")

    def call(self, args: Any) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        raise SlipwayError(f"The program calls {args.token}, which only a provider can answer; run `pulumi up`.")


class _Monitor(MockMonitor):
    """Records every registration. Called from the SDK's worker threads."""

    def __init__(self, project: Project, value_of: ValueOf, preview: bool) -> None:
        super().__init__(_NoMocks())
        self._project, self._value_of, self._preview = project, value_of, preview
        self._lock = threading.Lock()
        self.recorded: dict[str, Resource] = {}
        self.outputs: dict[str, Any] = {}
        self.messages: list[str] = []
        self.errors: list[str] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == "pulumi:pulumi:Stack":
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if request.remote:
            raise SlipwayError(f"{request.type} {request.name} is a component in another language or package; run `pulumi up`.")
        if request.transforms:
            raise SlipwayError(f"{request.name}: transforms are run by Pulumi's engine; run `pulumi up`.")
        inputs = cast(dict[str, Any], _decoded(request.object))
        aliases = tuple(dict.fromkeys(self._aliases(request, urn)))
        identity, known = "", struct_pb2.Struct()
        known.CopyFrom(request.object)
        if request.type.startswith("random:"):
            identity = "none"
            _add_outputs(known, self._random(request, inputs, aliases), set(request.additionalSecretOutputs))
        elif request.type.startswith("kubernetes:") and "kind" in inputs:
            metadata: dict[str, Any] = inputs.setdefault("metadata", {})
            if "name" not in metadata and "generateName" not in metadata:
                metadata["name"] = autoname(request.name, inputs)
                known.get_or_create_struct("metadata").update({"name": metadata["name"]})
            identity = "/".join(str(part) for part in (metadata.get("namespace"), metadata.get("name")) if part)
            if inputs["kind"] == "Secret":
                inputs |= {key: _all_secret(inputs[key]) for key in ("data", "stringData") if key in inputs}
        self._write_down(request, urn, inputs, aliases, custom=bool(request.custom))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=known, unknown=not self._preview and bool(request.custom))

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        urn = self.make_urn(request.parent, request.type, request.name)
        self._write_down(request, urn, cast(dict[str, Any], _decoded(request.properties)), (), custom=True, read=str(request.id))
        return resource_pb2.ReadResourceResponse(urn=urn, properties=request.properties)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        if "::pulumi:pulumi:Stack::" in request.urn:
            self.outputs = cast(dict[str, Any], _decoded(request.outputs))
        return empty_pb2.Empty()

    def RegisterResourceHook(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        raise SlipwayError(f"The hook {request.name} would be run by Pulumi's engine; run `pulumi up`.")

    def RegisterStackTransform(self, request: Any) -> Any:  # noqa: ARG002, N802 (gRPC's names)
        raise SlipwayError("Transforms are run by Pulumi's engine; run `pulumi up`.")

    def Log(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        """The log of Pulumi's engine: errors fail the run, as they do under the CLI."""
        if request.severity == engine_pb2.ERROR:
            self.errors.append(request.message)
        elif request.severity == engine_pb2.WARNING:
            self.messages.append(request.message)

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN as in Pulumi's engine: the type is qualified by all parents except the stack."""
        chain = parent.split("::")[2] + "$" if parent and "::pulumi:pulumi:Stack::" not in parent else ""
        return f"urn:pulumi:{self._project.stack}::{self._project.name}::{chain}{type_}::{name}"

    def _write_down(
        self, request: Any, urn: str, inputs: Mapping[str, Any], aliases: tuple[str, ...], custom: bool, read: str | None = None
    ) -> None:
        options: dict[str, Any] = {"read": read, "provider": request.provider.rpartition("::")[0]}
        if read is None:
            options |= {name: getattr(request, name) for name in ("protect", "retainOnDelete", "deleteBeforeReplace")}
            options |= {name: list(getattr(request, name)) for name in ("ignoreChanges", "replaceOnChanges")}
            options["import"] = request.importId
        resource = Resource(
            urn=urn,
            type=request.type,
            name=request.name,
            parent="" if "::pulumi:pulumi:Stack::" in (request.parent or "") else request.parent,
            custom=custom,
            inputs=inputs,
            options={key: value for key, value in options.items() if value},
            dependencies=tuple(sorted(request.dependencies)),
            aliases=aliases,
        )
        with self._lock:
            if urn in self.recorded:
                raise SlipwayError(f"Two resources have the same URN, {urn}. Give one of them another name.")
            self.recorded[urn] = resource

    def _random(self, request: Any, inputs: Mapping[str, Any], aliases: tuple[str, ...]) -> dict[str, Any]:
        revealed_inputs = revealed(inputs)
        key = random_values.key(request.type, request.name, revealed_inputs)
        alias_keys = tuple(random_values.key(request.type, urn.rpartition("::")[2], revealed_inputs) for urn in aliases)
        return random_values.outputs(request.type, revealed_inputs, self._value_of(key, alias_keys, request.type, revealed_inputs))

    def _aliases(self, request: Any, urn: str) -> Iterator[str]:
        """All alias URNs: the given ones, also under each alias of the parent, as Pulumi's engine derives them."""
        with self._lock:
            parent = self.recorded.get(request.parent)
        identities: list[tuple[str, str, str]] = [(request.parent, request.type, request.name)]
        for alias in request.aliases:
            if alias.urn:
                yield alias.urn
                continue
            spec = alias.spec
            old_parent = "" if spec.noParent else spec.parentUrn or request.parent
            identities.append((old_parent, spec.type or request.type, spec.name or request.name))
        for old_parent, type_, name in identities:
            parents: list[tuple[str, str]] = [(old_parent, name)]
            if parent is not None and old_parent == request.parent:
                for parent_alias in parent.aliases:
                    old_name = parent_alias.rpartition("::")[2]
                    follows = name.startswith(parent.name)
                    parents.append((parent_alias, old_name + name.removeprefix(parent.name) if follows else name))
            for parent_urn, alias_name in parents:
                if (alias_urn := self.make_urn(parent_urn, type_, alias_name)) != urn:
                    yield alias_urn


def autoname(name: str, inputs: Mapping[str, Any]) -> str:
    """`<name>-<8 hex digits of the content's hash>`: changed content has a new name, which rolls the pods that mount it."""
    content = json.dumps(revealed(inputs), sort_keys=True, default=repr)
    return f"{name.lower()}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def _decoded(value: Any) -> Any:
    """A protobuf value as JSON with Secret and Unknown where they are marked. Nulls in objects are dropped."""
    if isinstance(value, struct_pb2.Struct):
        signature = value.fields[_SIGNATURE].string_value if _SIGNATURE in value.fields else ""
        if signature == _SECRET:
            return Secret(_decoded(_item(value, "value")))
        if signature == _RESOURCE:
            return _item(value, "urn")
        if signature:
            return f"[{'file' if 'path' in value.fields else 'asset'}]"
        pairs = ((key, _decoded(_item(value, key))) for key in value.fields)
        return {key: field for key, field in pairs if field is not None}
    if isinstance(value, struct_pb2.ListValue):
        return [_decoded(item) for item in cast(Iterable[Any], value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return Unknown() if value == rpc.UNKNOWN else value


def _item(struct: struct_pb2.Struct, key: str) -> Any:
    return cast(Any, struct)[key]


def _all_secret(value: Any) -> Any:
    """Marks every value of a Kubernetes Secret as secret; its keys are not."""
    inner = value.value if isinstance(value, Secret) else value
    if isinstance(inner, dict):
        return {key: item if isinstance(item, Secret) else Secret(item) for key, item in cast(dict[str, Any], inner).items()}
    return Secret(inner)


def _add_outputs(known: struct_pb2.Struct, values: Mapping[str, Any], secret: set[str]) -> None:
    known.update({key: {_SIGNATURE: _SECRET, "value": value} if key in secret else value for key, value in values.items()})
