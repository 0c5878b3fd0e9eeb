"""Findings of a check, and the spec of a run."""

from programs.node_checks.plan import Outcome
from programs.node_checks.run import Spec
from programs.node_checks.settings import CheckedSet
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN

FINDINGS = {
    PASSED: Outcome(PASSED, "fine"),
    FAILED: Outcome(FAILED, "full"),
    UNKNOWN: Outcome(UNKNOWN, "no answer"),
    SKIPPED: Outcome(SKIPPED, "busy"),
}
AT, EARLIER = "2026-01-02T03:04:05Z", "2026-01-01T00:00:00Z"


def spec(size: int, max_drained: int = 100) -> Spec:
    each = CheckedSet("n", size, 0, max_drained, {})
    return Spec("disk", "disk", 60, 1, 600, "node", (each,), targets={f"n-{ordinal}": each for ordinal in range(size)})
