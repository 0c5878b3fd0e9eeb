"""A controller process that ends at any of its writes, to the API server or to Slurm, and is followed by another."""

from controllers.runtime.errors import ApiError
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.fakes.requests import Failure, Request

KILL_POINTS = 32
"""More than the writes of any history that is tried."""


class Killer:
    """Lets so many writes to the API server and to Slurm through, then the process gets no further."""

    def __init__(self, allowed: int) -> None:
        self.allowed, self.writes = allowed, 0

    def of_kubernetes(self, request: Request) -> Failure | None:
        return self._fate() if request.is_write else None

    def of_slurm(self) -> Failure | None:
        return self._fate()

    @property
    def has_struck(self) -> bool:
        return self.writes >= self.allowed

    def _fate(self) -> Failure | None:
        self.writes += 1
        if self.writes == self.allowed:
            return Failure("cut_after")  # it happened, and nobody has heard
        return Failure("cut") if self.writes > self.allowed else None


async def killed_at(cluster: Cluster, allowed: int, rounds: int, busy_for: int = 0, round_s: float = 0) -> Killer:
    """Some rounds, in which the process ends at that write and is followed by another; the job on gpu-1 ends after `busy_for` of them."""
    killer = Killer(allowed)
    cluster.server.on_request, cluster.slurm.on_write = killer.of_kubernetes, killer.of_slurm
    for number in range(rounds):
        if busy_for and number == busy_for:
            cluster.slurm.end_job("gpu-1")
        cluster.process.later_s += round_s
        try:
            await cluster.rounds(1)
        except ApiError:
            assert killer.has_struck
    cluster.server.on_request = cluster.slurm.on_write = None
    await cluster.replace_process()
    return killer
