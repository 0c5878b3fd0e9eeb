"""The list of the declared node sets, for stacks that do not wait until a set is drained.

The controller deletes a set that leaves the list. A deleted list stays until its last set is gone. See controllers/nodeset/declared.py.
"""

from collections.abc import Sequence

from components.labels import Manifest, labels, object_name
from components.objects import config_map
from names import finalizers

_DRAIN_S = 900
"""How long `pulumi destroy` waits until all sets are drained; the next destroy continues to wait."""


def build_declared_sets(cluster: str, namespace: str, names: Sequence[str]) -> Manifest:
    """The list of the declared sets. Its deletion waits until the last set is drained and gone: what the sets need is deleted later."""
    # The controller watches it by the label that the records of its sets also have.
    name, object_labels = declared_sets_name(cluster), labels(cluster, "node-sets", "")
    sets_map = config_map(name, namespace, object_labels, dict.fromkeys(names, ""))
    timeout = {"pulumi.com/timeoutSeconds": str(_DRAIN_S)}
    return {**sets_map, "metadata": {**sets_map["metadata"], "finalizers": [finalizers.NODE_SETS], "annotations": timeout}}


def declared_sets_name(cluster: str) -> str:
    """Name of the ConfigMap that lists the declared sets."""
    return object_name(cluster, "node-sets")
