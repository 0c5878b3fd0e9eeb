"""OpenMPI programs by plain srun beside mpirun, in turns, on two nodes of the local cluster's dev stack: what a start costs, whether each
works, and what a message costs.

Both nodes are on one machine, whose cores the ranks share; so ranks that wait give their core away.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.results import Benchmark, Figure, figure
from tests.support.cluster.dev_stack import DevStack

PROGRAM = Path(__file__).with_name("mpi_cost.c").read_text()
_SCRIPT = """
set -e
export OMPI_MCA_mpi_yield_when_idle=1
by_srun="srun --overcommit --mem-per-cpu=0" by_mpirun="mpirun --oversubscribe --bind-to none"
for ((n = 0; n < $INITS; n++)); do
  echo "srun init $($by_srun -n $RANKS --ntasks-per-node=$((RANKS / 2)) ./mpi_cost)"
  echo "mpirun init $($by_mpirun -n $RANKS --map-by ppr:$((RANKS / 2)):node:OVERSUBSCRIBE ./mpi_cost)"
done
for ((n = 0; n < $PING_PONGS; n++)); do
  echo "srun ping $($by_srun -n 2 --ntasks-per-node=1 ./mpi_cost ping)"
  echo "mpirun ping $($by_mpirun -n 2 --map-by ppr:1:node ./mpi_cost ping)"
done
for ((n = $INITS; n < $STARTS; n++)); do
  $by_srun -n $RANKS --ntasks-per-node=$((RANKS / 2)) ./mpi_cost >/dev/null && echo started
done
"""


@dataclass(frozen=True)
class Size:
    """Ranks of a start, starts in all, and how many of them are measured beside mpirun's."""

    ranks: int = 8
    starts: int = 100
    inits: int = 15
    ping_pongs: int = 15


def measure(size: Size) -> Iterator[Figure]:
    """Ratios of srun's medians to mpirun's, and how many of all starts by srun failed."""
    stack = DevStack()
    stack.ssh("cat >mpi_cost.c && mpicc -O2 mpi_cost.c -o mpi_cost", stdin=PROGRAM)
    counts = f"RANKS={size.ranks} STARTS={size.starts} INITS={size.inits} PING_PONGS={size.ping_pongs}"
    command = f"cat >mpi_cost.sh && {counts} salloc --quiet --nodes=2 --exclusive bash mpi_cost.sh"
    rows = [line.split() for line in stack.ssh(command, stdin=_SCRIPT, timeout_s=1800).splitlines()]

    def ratio(what: str, column: int) -> float:
        srun, mpirun = (statistics.median(float(row[column]) for row in rows if row[:2] == [by, what]) for by in ("srun", "mpirun"))
        return srun / mpirun

    good = sum(row[0] == "started" or row[:2] == ["srun", "init"] for row in rows)
    ranks = f"{size.ranks} ranks of OpenMPI on 2 nodes by plain srun"
    yield figure(f"{ranks}: MPI_Init relative to mpirun's; medians of {size.inits}", 1.5, [ratio("init", 2)], unit="")
    yield figure(f"{ranks}: starts that failed, of {size.starts}", 0, [size.starts - good], unit="")
    for column, what in ((3, "8 bytes"), (4, "1 MiB")):
        say = f"OpenMPI by plain srun: {what} to another node and back, relative to mpirun's; medians of {size.ping_pongs}"
        yield figure(say, 1.05, [ratio("ping", column)], unit="")


BENCHMARK = Benchmark("mpi", measure, Size(), Size(ranks=4, starts=2, inits=1, ping_pongs=1))
