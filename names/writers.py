"""Who writes at the Kubernetes API: field managers of objects, and reporters of events."""

SLIPWAY = "slipway"
"""Field manager of `slipway up`, which applies objects, and of the controllers."""
PULUMI = "pulumi-kubernetes"
"""Field manager of objects that the Pulumi provider creates. The provider applies later changes under this name with a suffix. Before that,
it takes over all fields that were updated under a name with this beginning. So only fields that others applied conflict.

Source: pulumi-kubernetes, provider/pkg/await/await.go (fixCSAFieldManagers, patchForce).
"""
GUARD = "slipway-guard"
"""Field manager of the annotation that the guard puts on an object that it leaves alone."""
EC2 = "slipway-ec2"
"""Field manager of the machines' conditions, and of what the program for EC2 remembers."""
EC2_TOPOLOGY = "slipway-ec2-topology"
"""Field manager of the machines' labels that say where they are in EC2's network."""

NODESET_CONTROLLER_REPORTS = "slipway.dev/nodeset-controller"
FILES_CONTROLLER_REPORTS = "slipway.dev/files-controller"
GUARD_REPORTS = "slipway.dev/guard"
