"""The engine's side of a plugin: starts it as the Pulumi CLI does, asks it over gRPC, and is the monitor at which it registers resources.

Source: pulumi-language-python's RunPlugin (`python <folder> <engine address>`, the port on the first line of stdout) and provider.proto.
"""

import contextlib
import subprocess
from collections.abc import Generator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2_grpc, errors_pb2, provider_pb2, provider_pb2_grpc, resource_pb2_grpc, status_pb2

from tests.support.components.program import Monitor, Registered
from tests.support.configs.golden import GOLDEN
from tests.support.patience import patience

STACK = "urn:pulumi:dev::slipway::pulumi:pulumi:Stack::slipway-dev"
GOLDEN_SCHEMA = GOLDEN / "schema.json"
_DEADLINE_S = 60


class RefusedError(Exception):
    """What the engine is told of a resource that the plugin did not make."""

    def __init__(self, code: grpc.StatusCode, message: str, properties: Mapping[str, str]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.properties = properties
        """The reason by the path of the property."""


@dataclass(frozen=True)
class Plugin:
    """A plugin that answers, and the monitor that it registers at."""

    provider: Any
    monitor_address: str
    monitor: "_Monitor"

    def schema(self) -> str:
        """The package's schema, as JSON."""
        return self.provider.GetSchema(provider_pb2.GetSchemaRequest(version=0), timeout=_DEADLINE_S * patience()).schema

    def construct(self, name: str, inputs: Mapping[str, Any], preview: bool = False) -> tuple[dict[str, Any], list[Registered]]:
        """The outputs of a SlurmCluster with these inputs, and every resource that was registered for it. Raises RefusedError."""
        self.monitor.registered.clear()
        arguments = struct_pb2.Struct()
        arguments.update(inputs)
        request = provider_pb2.ConstructRequest(
            project="slipway",
            stack="dev",
            dryRun=preview,
            parallel=16,
            monitorEndpoint=self.monitor_address,
            type="slipway:index:SlurmCluster",
            name=name,
            parent=STACK,
            inputs=arguments,
        )
        try:
            answer = self.provider.Construct(request, timeout=_DEADLINE_S * patience())
        except grpc.RpcError as error:
            raise _refused(error) from None
        return dict(answer.state), list(self.monitor.registered)


@contextlib.contextmanager
def running(command: Sequence[str | Path], folder: Path) -> Generator[Plugin]:
    """The plugin that the command starts in a folder, the user's project, until the end of the block."""
    server = grpc.server(futures.ThreadPoolExecutor(16))
    monitor = _Monitor()
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitoring(monitor), server)
    engine_pb2_grpc.add_EngineServicer_to_server(_Engine(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    process = subprocess.Popen([*command, address, "--logtostderr"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdecimal(), f"the plugin printed {port!r} in place of its port"
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Plugin(provider_pb2_grpc.ResourceProviderStub(channel), address, monitor)
    finally:
        process.kill()
        process.communicate()
        server.stop(None)


def _refused(error: Any) -> RefusedError:
    reasons: dict[str, str] = {}
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                found = errors_pb2.InputPropertiesError()
                if detail.Unpack(found):
                    reasons |= {each.property_path: each.reason for each in found.errors}
    return RefusedError(error.code(), error.details(), reasons)


class _Monitor(Monitor):
    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the mocks make it, for one project and stack whatever this process runs for."""
        inside = "" if parent == "" else f"{parent.split('::')[2].rpartition('$')[2]}$"
        return f"urn:pulumi:dev::slipway::{inside}{type_}::{name}"


class _Monitoring(resource_pb2_grpc.ResourceMonitorServicer):
    """The mocks' monitor, over gRPC."""

    def __init__(self, monitor: Any) -> None:
        self.monitor = monitor

    def GetDeploymentInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return self.monitor.GetDeploymentInfo(request)

    def RegisterResource(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return self.monitor.RegisterResource(request)

    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return self.monitor.RegisterResourceOutputs(request)

    def RegisterPackage(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return self.monitor.RegisterPackage(request)


class _Engine(engine_pb2_grpc.EngineServicer):
    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's name)
        return empty_pb2.Empty()
