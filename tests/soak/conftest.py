"""The dev stack of tests/cluster and the image of tests/slurm, for what is long on them."""

from tests.support.cluster.machines import whole
from tests.support.cluster.node_sets import scaled_back
from tests.support.cluster.session import deployed, kube, own_cluster, pytest_runtest_makereport, registry, restored, stack
from tests.support.cluster.silence import answering
from tests.support.slurm.session import alone, image_root, tools

CLUSTER = (answering, deployed, kube, own_cluster, pytest_runtest_makereport, registry, restored, scaled_back, stack, whole)
SLURM = (alone, image_root, tools)
