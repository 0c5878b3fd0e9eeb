"""All benchmarks, in the order of docs/explain/benchmarks.md's run, by what they need. `make test` runs each at its smallest size:
`test_bench.py` of tests/unit/bench, tests/apiserver, tests/slurm and tests/cluster.
"""

from typing import Any

from tests.bench import (
    collector,
    containers,
    forty,
    guard,
    informers,
    live,
    mpi,
    node_checks,
    page,
    plans,
    shared_root,
    sleeping,
    verbs,
    waking,
)
from tests.bench.results import Benchmark
from tests.bench.scale import benchmarks as scale

STACK: tuple[Benchmark[Any], ...] = (
    verbs.WARM,
    sleeping.BENCHMARK,
    verbs.UNCHANGED,
    live.BENCHMARK,
    guard.BENCHMARK,
    mpi.BENCHMARK,
    forty.BENCHMARK,
)
"""On the dev stack. The first one makes it."""
BROWSER: tuple[Benchmark[Any], ...] = (page.BENCHMARK,)
HERE: tuple[Benchmark[Any], ...] = (
    verbs.PREVIEWS,
    node_checks.BENCHMARK,
    informers.BENCHMARK,
    waking.BENCHMARK,
    plans.BENCHMARK,
    collector.BENCHMARK,
    verbs.LAWS,
)
"""With nothing but Python."""
SLURM: tuple[Benchmark[Any], ...] = (*scale.BENCHMARKS, shared_root.FILLS)
"""With the Slurm image, without Kubernetes or with its API server alone. Each size has a field `image`."""
CLUSTERS: tuple[Benchmark[Any], ...] = (shared_root.BENCHMARK, containers.BENCHMARK)
"""On a cluster of the real image. The tests that have such a cluster run them there: test_shared_root.py and test_containers.py."""
BARE: tuple[Benchmark[Any], ...] = (verbs.COLD,)
"""In a Debian of its own."""
ALL = (*STACK, *BROWSER, *HERE, *SLURM, *CLUSTERS)
"""All but the bare machine."""
