"""The dev stack (tests/support/cluster/session.py)."""

from tests.support.cluster.session import (
    deployed,
    kube,
    nodes_registry,
    own_cluster,
    pytest_runtest_makereport,
    registry,
    restored,
    shared_cluster,
    stack,
)

FIXTURES = (deployed, kube, nodes_registry, own_cluster, registry, restored, shared_cluster, stack)
HOOKS = (pytest_runtest_makereport,)
