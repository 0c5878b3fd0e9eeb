"""The list of the node sets that the stack declares, for stacks that do not wait while a set is drained.

The controller deletes a set that leaves the list; the list itself goes when its last set is gone. See controllers/nodeset/declared.py.
"""

from collections.abc import Sequence

from components.labels import Manifest, labels, object_name
from components.objects import config_map
from names import finalizers

_DRAIN_S = 900
"""Seconds that `pulumi destroy` waits for all sets to be drained; the next destroy waits on."""


def build_declared_sets(cluster: str, namespace: str, names: Sequence[str]) -> Manifest:
    """The list of the declared sets. Its deletion waits until the last of them is drained and gone: what they need goes after it."""
    # The controller hears of it by the label that the records of its sets have, too.
    name, object_labels = declared_sets_name(cluster), labels(cluster, "node-sets", "")
    sets_map = config_map(name, namespace, object_labels, dict.fromkeys(names, ""))
    timeout = {"pulumi.com/timeoutSeconds": str(_DRAIN_S)}
    return {**sets_map, "metadata": {**sets_map["metadata"], "finalizers": [finalizers.NODE_SETS], "annotations": timeout}}


def declared_sets_name(cluster: str) -> str:
    """Name of the ConfigMap that lists the declared sets."""
    return object_name(cluster, "node-sets")
