"""Requests for steps on machines, which the NodeSet controller posts to the program for EC2 and webhooks: docs/operate/remedies.md."""

import msgspec


class StepRequest(msgspec.Struct, frozen=True, rename="camel"):
    """One step on one machine."""

    id: str
    """The same for the same step, however often it is sent."""
    step: str
    cluster: str
    node_set: str
    node: str
    machine: str
    """Name of the Kubernetes node."""
    provider_id: str = msgspec.field(name="providerID")
    causes: tuple[str, ...] = ()
