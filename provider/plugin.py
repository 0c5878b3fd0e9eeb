"""The component provider: SlurmCluster for programs in every language; the engine shows the faults of its config as the user's mistakes.

The SDK does the rest. It infers the schema from types and docstrings (tests/golden/schema.json), and speaks gRPC. Only `SlurmCluster` is
published: decisions/0005 says why its parts are not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyErrorDetails
from pulumi.output import Unknown
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from components.cluster import SlurmCluster
from configs.faults import ConfigFaults, Fault
from configs.rules.structure import ROOT, spelled
from provider import __version__

PACKAGE = "slipway"

_OUTPUT_REFUSED = "is an output or a secret. Give the value itself: Slipway renders Slurm's files from it before anything is made."


def serve(arguments: list[str]) -> None:
    """Answers the engine, whose address is the first of the arguments, until the process ends."""
    main(SlipwayProvider([SlurmCluster], PACKAGE, version=__version__), arguments)


class SlipwayProvider(ComponentProvider):
    """The SDK's provider, but for what it does with wrong arguments: it would drop unknown keys and show a stack trace for the rest."""

    def map_inputs(self, inputs: pulumi.Inputs, component_def: Any) -> pulumi.Inputs:  # noqa: ARG002
        """The arguments as they came: their names are those of the stack file, and the loader finds all that is wrong with them."""
        return inputs

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        if outputs := list(outputs_in(inputs)):
            raise refusal(outputs)
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, ConfigFaults):
                raise refusal(error.inner.faults) from None
            raise


def outputs_in(value: Any, *place: str | int) -> Iterator[Fault]:
    """A fault for every value that is known only once another resource is made: files are rendered and checked before that."""
    if isinstance(value, pulumi.Output | Unknown):
        yield Fault(spelled(place), _OUTPUT_REFUSED)
    elif isinstance(value, Mapping):
        for key, item in cast(Mapping[str, Any], value).items():
            yield from outputs_in(item, *place, key)
    elif isinstance(value, list):
        for at, item in enumerate(cast(list[Any], value)):
            yield from outputs_in(item, *place, at)


def refusal(faults: Sequence[Fault]) -> InputPropertiesError:
    """The faults as the engine shows them: each with its path among the arguments, and its value."""
    count = f"{len(faults)} mistake{'s' if len(faults) > 1 else ''}"
    details = [InputPropertyErrorDetails(property_path=path_of(fault), reason=fault.message) for fault in faults]
    return InputPropertiesError(f"{count} in the arguments of SlurmCluster", details)


def path_of(fault: Fault) -> str:
    """Where the fault is among the arguments: `nodeSets[0].pool` is what a stack file's reader knows as `cluster.nodeSets[0].pool`."""
    return fault.path.removeprefix(ROOT).removeprefix(".")
