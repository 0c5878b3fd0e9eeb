"""Repairs of nodes that stay faulty, and all health checks that the controller starts. Pure; part of `plan`.

Others import only this module. `plan_repairs` decides everything once for each round; the rest of the plan reads the result.
"""

from controllers.nodeset.repairs.checks import LATE_S
from controllers.nodeset.repairs.outlook import with_outlooks
from controllers.nodeset.repairs.plan import RepairPlan, plan_repairs
from controllers.nodeset.repairs.steps import MachineStep

__all__ = ["LATE_S", "MachineStep", "RepairPlan", "plan_repairs", "with_outlooks"]
