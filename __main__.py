"""The stack file: one config, one Slurm cluster. `pulumi up` runs it, and `slipway up` where there is no Pulumi CLI."""

import pulumi

from components.cluster import SlurmCluster
from configs.faults import ConfigFaults
from configs.load import parse_cluster

stack = pulumi.get_stack()
stack_file = f"Pulumi.{stack}.yaml"
try:
    cluster = SlurmCluster(stack, parse_cluster(pulumi.Config("slipway").require("cluster"), stack_file))
except ConfigFaults as found:
    # A RunError is shown as it is, without a stack trace: these are a user's mistakes, not the program's.
    raise pulumi.RunError(str(ConfigFaults(stack_file, found.faults))) from None

pulumi.export("namespace", cluster.namespace)
pulumi.export("login", cluster.ssh_command)
pulumi.export("slurmctld", cluster.slurmctld_address)
pulumi.export("rest", cluster.rest_url)
