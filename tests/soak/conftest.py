"""The dev stack of tests/cluster and the image of tests/slurm, for what is long on them."""

from tests.cluster.conftest import deployed, kube, own_cluster, pytest_runtest_makereport, registry, restored, stack
from tests.cluster.test_node_set_faults import whole
from tests.cluster.test_node_sets import scaled_back
from tests.cluster.test_silence import answering
from tests.slurm.conftest import alone, image_root, tools

CLUSTER = (answering, deployed, kube, own_cluster, pytest_runtest_makereport, registry, restored, scaled_back, stack, whole)
SLURM = (alone, image_root, tools)
