"""One Slurm cluster: Pulumi.<stack>.yaml says all of it, under `slipway:cluster`."""

import pulumi
from slipway import ConfigFaults, SlurmCluster, parse_cluster

stack = pulumi.get_stack()
stack_file = f"Pulumi.{stack}.yaml"
try:
    cluster = SlurmCluster(stack, parse_cluster(pulumi.Config("slipway").require("cluster"), stack_file))
except ConfigFaults as found:
    # A RunError is shown as it is, without a stack trace: these are mistakes in the stack file.
    raise pulumi.RunError(str(ConfigFaults(stack_file, found.faults))) from None

pulumi.export("login", cluster.ssh_command)
