"""OpenMPI programs by plain srun beside mpirun, in turns, on two nodes of the local cluster's dev stack: what a start costs, whether each
works, and what a message costs.

Both nodes are on one machine, whose cores the ranks share; so ranks that wait give their core away.
"""

import statistics
from pathlib import Path

from tests.cluster.dev_stack import DevStack

RANKS, STARTS, INITS, PING_PONGS = 8, 100, 15, 15
PROGRAM = Path(__file__).with_name("mpi_cost.c").read_text()
_SCRIPT = f"""
set -e
export OMPI_MCA_mpi_yield_when_idle=1
by_srun="srun --overcommit --mem-per-cpu=0" by_mpirun="mpirun --oversubscribe --bind-to none"
for ((n = 0; n < {INITS}; n++)); do
  echo "srun init $($by_srun -n {RANKS} --ntasks-per-node={RANKS // 2} ./mpi_cost)"
  echo "mpirun init $($by_mpirun -n {RANKS} --map-by ppr:{RANKS // 2}:node:OVERSUBSCRIBE ./mpi_cost)"
done
for ((n = 0; n < {PING_PONGS}; n++)); do
  echo "srun ping $($by_srun -n 2 --ntasks-per-node=1 ./mpi_cost ping)"
  echo "mpirun ping $($by_mpirun -n 2 --map-by ppr:1:node ./mpi_cost ping)"
done
for ((n = {INITS}; n < {STARTS}; n++)); do
  $by_srun -n {RANKS} --ntasks-per-node={RANKS // 2} ./mpi_cost >/dev/null && echo started
done
"""


def measure() -> dict[str, float]:
    """Ratios of srun's medians to mpirun's: `init` of MPI_Init, `small` of 8 bytes there and back, `large` of 1 MiB; and `failed`, how many
    of all starts by srun.
    """
    stack = DevStack()
    stack.ssh("cat >mpi_cost.c && mpicc -O2 mpi_cost.c -o mpi_cost", stdin=PROGRAM)
    said = stack.ssh("cat >mpi_cost.sh && salloc --quiet --nodes=2 --exclusive bash mpi_cost.sh", stdin=_SCRIPT, timeout_s=1800)
    rows = [line.split() for line in said.splitlines()]

    def ratio(what: str, column: int) -> float:
        srun, mpirun = (statistics.median(float(row[column]) for row in rows if row[:2] == [by, what]) for by in ("srun", "mpirun"))
        return srun / mpirun

    good = sum(row[0] == "started" or row[:2] == ["srun", "init"] for row in rows)
    return {"init": ratio("init", 2), "small": ratio("ping", 3), "large": ratio("ping", 4), "failed": STARTS - good}


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name}: {value:.2f}")
