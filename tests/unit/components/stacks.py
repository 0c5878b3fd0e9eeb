"""The two example stacks as the components get them: checked, and with their defaults worked out."""

from configs.load import load_cluster
from tests.unit.components.program import ROOT, stack_config

DEV, H100 = (load_cluster(stack_config(stack), ROOT, f"Pulumi.{stack}.yaml") for stack in ("dev", "h100"))
