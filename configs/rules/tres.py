"""Rules of TRES in slurm.conf: Slurm counts every TRES that weights and lists name.

Source: slurm.conf(5), AccountingStorageTRES and PriorityWeightTRES. slurmctld does not start with a weight for a TRES that it does not
track (26.05.5: not a configured TRES type).
"""

from collections.abc import Iterator

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.rules.names import Known
from configs.rules.slurm_types import readable
from configs.rules.slurm_words import NODE_VALUES, PARTITION_VALUES
from configs.rules.stated import stated
from slurm import tres
from slurm.conf import known, pairs_of

_WEIGHTS = ("PriorityWeightTRES", "TRESBillingWeights", "TRESWeights")
_LIST = "AccountingStorageTRES"


def check_tres(cluster: Cluster) -> list[Fault]:
    """Faults of the names in weights and in the list of what is tracked."""
    gres = _gres(cluster)
    tracked = None if gres is None else frozenset({*tres.ALWAYS, *(f"gres/{resource}" for resource in gres), *_listed(cluster)})
    faults: list[Fault] = []
    for path, key, value in _given(cluster):
        names = [item.partition("=")[0].lower() for item in value.split(",")]
        about = ("cluster.nodeSets", "cluster.slurm")
        for name in names:
            if mistake := _list_mistake(name, gres) if key == _LIST else _mistake(name, tracked):
                faults.append(Fault(path, mistake, about))
        if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
            faults.append(Fault(path, f"{quoted(value)} says {twice} twice. Keep one."))
        if not cluster.accounting.enabled and key in (_LIST, "PriorityWeightTRES"):
            faults.append(Fault(path, "needs accounting, which accounting.enabled: false leaves out.", ("cluster.accounting.enabled",)))
    return faults


def _given(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    """Each list of TRES: its path, Slurm's key and the value."""
    for name, setting in stated(cluster).items():
        if name in (*_WEIGHTS, _LIST):
            yield setting.path, name, setting.value
    for at, node_set in enumerate(cluster.node_sets):
        for name, (key, value) in readable(node_set.slurmd, NODE_VALUES).items():
            if known(name, _WEIGHTS):
                yield f"cluster.nodeSets[{at}].slurmd.{key}", name, value
    for at, partition in enumerate(cluster.partitions):
        for name, (key, value) in readable(partition.settings, PARTITION_VALUES).items():
            if known(name, _WEIGHTS):
                yield f"cluster.partitions[{at}].settings.{key}", name, value


def _mistake(name: str, tracked: Known) -> str | None:
    """The mistake in the name of a weight: no TRES, or one that nothing counts here."""
    if not tres.is_tres(name):
        return f"{quoted(name)} is not a TRES. {did_you_mean(name, tracked or tres.ALWAYS)}"
    if tracked is not None and name not in tracked:
        return f"{quoted(name)} is not counted on this cluster. {did_you_mean(name, tracked)}"
    return None


def _list_mistake(name: str, gres: set[str] | None) -> str | None:
    if not tres.is_tres(name):
        return f"{quoted(name)} is not a TRES. {did_you_mean(name, tres.ALWAYS, 'Name one such as license/matlab or fs/lustre.')}"
    resource = tres.gres_of(name)
    if resource and gres is not None and ":".join(filter(None, resource)) not in gres:
        return f"no node has {quoted(name)}. {did_you_mean(name, [f'gres/{known_resource}' for known_resource in gres])}"
    return None


def _gres(cluster: Cluster) -> set[str] | None:
    """The generic resources of the cluster's nodes; None if raw lines or settings may add others."""
    raw = [key for line in cluster.slurm.raw for key, _ in pairs_of(line) or ()]
    if any(known(key, ("GresTypes", "Gres")) for key in (*raw, *cluster.slurm.settings)):
        return None
    types = {kind for node_set in cluster.node_sets if node_set.gpus for kind in node_set.gpus.types}
    return {*tres.GPU, *(f"gpu:{kind}" for kind in types)} if types else set()


def _listed(cluster: Cluster) -> list[str]:
    return stated(cluster)[_LIST].value.lower().split(",") if _LIST in stated(cluster) else []
