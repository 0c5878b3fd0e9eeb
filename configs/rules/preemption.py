"""Rules of preemption: the cluster, its partitions and its QOS must agree, or slurmctld does not start, or nothing is preempted.

Source: slurm.conf(5), PreemptMode and PreemptType; _validate_and_set_defaults of Slurm's src/common/read_config.c.
"""

from collections.abc import Mapping

from configs.faults import Fault
from configs.models.cluster import Cluster
from configs.rules.slurm_types import readable
from configs.rules.slurm_words import PARTITION_VALUES
from configs.rules.stated import Stated, stated

NONE = "preempt/none"
_ACTIONS = ("CANCEL", "REQUEUE", "SUSPEND", "OFF")


def preempt_type(cluster: Cluster) -> str:
    """The plugin that decides which jobs are preempted."""
    return _kind(stated(cluster))


def check_preemption(cluster: Cluster) -> list[Fault]:
    """Faults of PreemptType and PreemptMode, in the cluster, its partitions and its QOS."""
    settings = stated(cluster)
    kind = _kind(settings)
    modes = settings["PreemptMode"].value.upper().split(",") if "PreemptMode" in settings else ["OFF"]
    faults = _check_modes(settings["PreemptMode"].path, modes) if "PreemptMode" in settings else []
    if not faults:
        faults += _check_cluster(kind, modes, settings)
    about = ("cluster.slurm",)
    for at, partition in enumerate(cluster.partitions):
        partition_settings = readable(partition.settings, PARTITION_VALUES)
        for key in ("PreemptMode", "GraceTime"):
            if key in partition_settings and kind != "preempt/partition_prio" and partition_settings[key][1].upper() not in ("0", "OFF"):
                message = (
                    f"does nothing with PreemptType={kind}. Say PreemptType: preempt/partition_prio in slurm.settings, or leave it out."
                )
                faults.append(Fault(f"cluster.partitions[{at}].settings.{partition_settings[key][0]}", message, about))
                break
        else:
            if "PreemptMode" in partition_settings:
                path = f"cluster.partitions[{at}].settings.{partition_settings['PreemptMode'][0]}"
                faults += _check_suspend(path, partition_settings["PreemptMode"][1].upper().split(","), modes)
    for at, qos in enumerate(cluster.accounting.qos):
        path = f"cluster.accounting.qos[{at}].preemptMode"
        if qos.preempt_mode not in (None, "off") and kind != "preempt/qos":
            message = f"does nothing with PreemptType={kind}. Say PreemptType: preempt/qos in slurm.settings, or leave it out."
            faults.append(Fault(path, message, about))
        elif qos.preempt_mode == "suspend":
            faults += _check_suspend(path, ["SUSPEND"], modes)
    return faults


def _check_modes(path: str, modes: list[str]) -> list[Fault]:
    actions = [mode for mode in modes if mode in _ACTIONS]
    if len(actions) > 1:
        return [Fault(path, f"{' and '.join(actions)} exclude each other. Keep one of them.")]
    return []


def _kind(settings: Mapping[str, Stated]) -> str:
    return settings["PreemptType"].value.lower() if "PreemptType" in settings else NONE


def _check_cluster(kind: str, modes: list[str], settings: Mapping[str, Stated]) -> list[Fault]:
    """slurmctld does not start with any of these."""
    acts = any(mode not in ("OFF", "GANG") for mode in modes)
    if kind == NONE and acts:
        message = f"needs a PreemptType, and it is {NONE}. Say PreemptType: preempt/qos or preempt/partition_prio, or leave this out."
        return [Fault(settings["PreemptMode"].path, message, ("cluster.slurm",))]
    if kind != NONE and not any(mode in ("CANCEL", "REQUEUE", "SUSPEND") for mode in modes):
        message = "needs to know what becomes of preempted jobs. Say PreemptMode: REQUEUE, CANCEL or SUSPEND,GANG."
        return [Fault(settings["PreemptType"].path, message, (settings["PreemptMode"].path,) if "PreemptMode" in settings else ())]
    return _check_suspend(settings["PreemptMode"].path, modes, modes) if "PreemptMode" in settings else []


def _check_suspend(path: str, modes: list[str], cluster_modes: list[str]) -> list[Fault]:
    if "SUSPEND" in modes and "GANG" not in cluster_modes:
        message = "needs GANG, which wakes the suspended jobs again. Say PreemptMode: SUSPEND,GANG in slurm.settings."
        return [Fault(path, message, () if path.startswith("cluster.slurm") else ("cluster.slurm",))]
    return []
