"""Values that each part could have, and that mean nothing, or something else than was meant: each is one fault, with what would do.

Most of these Slurm takes without a word, or with a line in a log that nobody reads: it leaves the word out, takes another value, or starts
no job. tests/slurm/test_words.py asks a real slurmctld about some of them.
"""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from tests.support.configs.sound import (
    MOUNT,
    NFS,
    SOUND,
    WITHOUT_GPUS,
    alone,
    check,
    files,
    items,
    nfs,
    partition,
    qos,
    raw,
    settings,
    slurmd,
)
from tests.support.configs.stacks import GONE, cluster
from tests.unit.configs.found_faults import faults

SET, POOL, PARTITION = "cluster.nodeSets[0]", "cluster.nodePools[0]", "cluster.partitions[0]"
SETTINGS, ITEMS, RAW = "cluster.slurm.settings", "cluster.slurm.schedulerParameters", "cluster.slurm.raw"
IMAGE = "registry.example/slipway/slurm:26.05"
SOCKETS: dict[str, Any] = {
    "nodePools[0].hardware.sockets": 2,
    "nodePools[0].hardware.coresPerSocket": 2,
    "nodePools[0].max": 9,
    "nodeSets[1].cpus": GONE,
}
"""The nodes with GPUs have all of a machine of two processors."""


def gpus(**given: Any) -> dict[str, Any]:
    return {"nodeSets[1].slurmd": given}


NETWORK = "cluster.topologies[0]"


def networks(*given: dict[str, Any]) -> dict[str, Any]:
    return {"topologies": [{"name": "net", **each} for each in given]}


SMTP = "cluster.notifications.smtp"


def smtp(**more: object) -> dict[str, Any]:
    relay = {"host": "relay.example.com", "sender": "slurm@example.com", "domain": "example.com"}
    return {"notifications": {"smtp": {**relay, **more}}}


RECEIVER = "cluster.notifications.receivers[0]"


def told(*more: dict[str, Any], **given: Any) -> dict[str, Any]:
    """A stack with receivers of news."""
    return {"notifications": {"receivers": [{"name": "chat", "urlSecret": "chat", **given}, *more]}}


def images(slurm: str) -> dict[str, Any]:
    return {"images": {"slurm": slurm}}


NODES = [
    pytest.param(slurmd(MemSpecLimit=-1), f"{SET}.slurmd.MemSpecLimit", '"-1" is nothing that Slurm reads as MemSpecLimit', id="memory-kept-below-zero"),
    pytest.param(slurmd(MemSpecLimit="INFINITE"), f"{SET}.slurmd.MemSpecLimit", '"INFINITE" is nothing that Slurm reads', id="all-memory-in-words-kept"),
    pytest.param(slurmd(MemSpecLimit="0x1000"), f"{SET}.slurmd.MemSpecLimit", "keeps all memory of the node (2048 MiB)", id="all-memory-kept-in-hexadecimal"),
    pytest.param(slurmd(CoreSpecCount=2), f"{SET}.slurmd.CoreSpecCount", "2 leaves no core of 2 to jobs; Slurm would take 1 instead", id="all-cores-kept"),
    pytest.param(slurmd(CoreSpecCount="INFINITE"), f"{SET}.slurmd.CoreSpecCount", "nothing that Slurm reads", id="endless-cores-kept"),
    pytest.param(slurmd(CoreSpecCount=1, CpuSpecList="0"), f"{SET}.slurmd.CoreSpecCount", "cannot be combined with CpuSpecList", id="cores-and-cpus-kept"),
    pytest.param(slurmd(CpuSpecList="2"), f"{SET}.slurmd.CpuSpecList", "names CPU 2, and the node has 0 to 1", id="kept-cpu-that-is-not-there"),
    pytest.param(slurmd(CpuSpecList="1-0"), f"{SET}.slurmd.CpuSpecList", "goes backwards", id="kept-cpus-backwards"),
    pytest.param(slurmd(CpuSpecList="0-1"), f"{SET}.slurmd.CpuSpecList", "leaves no CPU of 2", id="all-cpus-kept"),
    pytest.param(slurmd(CpuSpecList="first"), f"{SET}.slurmd.CpuSpecList", "Give CPUs by number, as in 0,1 or 0-3", id="kept-cpus-in-words"),
    pytest.param(slurmd(TmpDisk="UNLIMITED"), f"{SET}.slurmd.TmpDisk", "nothing that Slurm reads as TmpDisk", id="endless-disk"),
    pytest.param(slurmd(CpuBind="cors"), f"{SET}.slurmd.CpuBind", "Give none, socket, ldom, core or thread", id="unknown-binding"),
    pytest.param(slurmd(RestrictedCoresPerGPU=1), f"{SET}.slurmd.RestrictedCoresPerGPU", "this set has none", id="cores-for-gpus-that-are-not-there"),
    pytest.param({**gpus(RestrictedCoresPerGPU=1), **SOCKETS, "nodePools[0].hardware.sockets": 3}, "cluster.nodeSets[1].slurmd.RestrictedCoresPerGPU", "which of 3 sockets is beside each of 4 GPUs. Say it under gpus.sockets", id="cores-for-gpus-without-sockets"),
    pytest.param({**gpus(RestrictedCoresPerGPU=2), **SOCKETS}, "cluster.nodeSets[1].slurmd.RestrictedCoresPerGPU", "2 for each of 2 GPUs beside a socket are more than its cores (2)", id="more-cores-for-gpus-than-there-are"),
    pytest.param({**SOCKETS, "nodeSets[1].gpus.sockets": [0]}, "cluster.nodeSets[1].gpus.sockets", "1 sockets for 4 GPUs", id="socket-of-one-gpu-only"),
    pytest.param({**SOCKETS, "nodeSets[1].gpus.sockets": [0, 0, 1, 2]}, "cluster.nodeSets[1].gpus.sockets[3]", "no socket 2: a node of this set has 0 to 1", id="socket-that-is-not-there"),
    pytest.param({"nodeSets[1].gpus.sockets": [0, 0, 0, 1]}, "cluster.nodeSets[1].gpus.sockets[3]", "0 only. A set with cpus of its own is one socket", id="socket-of-a-part-of-a-machine"),
    pytest.param({"nodeSets[1].gpus.mig": [{"profile": "3g.40gb", "count": 1}, {"profile": "1g.10gb", "count": 5}]}, "cluster.nodeSets[1].gpus.mig", "needs 8 slices of compute, and a GPU has 7. Lower a count", id="instances-beyond-a-gpu"),
    pytest.param({"nodePools[0].hardware.gpus.memoryMiB": 40_960, "nodeSets[1].gpus.mig": [{"profile": "1g.10gb", "count": 7}]}, "cluster.nodeSets[1].gpus.mig", 'needs 70 GB, and "h100" has 40960 MiB. Take the profiles of this model', id="instances-of-another-model"),
    pytest.param({"nodeSets[1].gpus.mig": [{"profile": "1g.10gb", "count": 1}, {"profile": "1g.10gb", "count": 2}]}, "cluster.nodeSets[1].gpus.mig[1].profile", '"1g.10gb" is listed twice. Add its counts', id="profile-twice"),
    pytest.param({"nodePools[0].hardware.gpus.vendor": "amd", "nodeSets[1].gpus.vendor": "amd", "nodeSets[1].gpus.mig": [{"profile": "1g.10gb", "count": 1}]}, "cluster.nodeSets[1].gpus.mig", "is NVIDIA's, and the GPUs are of amd. Leave it out", id="instances-of-another-maker"),
    pytest.param({"nodeSets[1].gpus.mig": [{"profile": "1c.3g.40gb", "count": 1}]}, "cluster.nodeSets[1].gpus.mig[0].profile", "a profile of NVIDIA's MIG, as nvidia-smi writes it", id="compute-instance-as-a-profile"),
    pytest.param({**gpus(RestrictedCoresPerGPU=1), **SOCKETS, "nodeSets[1].gpus.mig": [{"profile": "1g.10gb", "count": 2}]}, "cluster.nodeSets[1].slurmd.RestrictedCoresPerGPU", "1 for each of 4 instances of MIG beside a socket", id="more-cores-for-instances-than-there-are"),
    pytest.param({"nodeSets[0].update": {"maxUnavailable": 10**6}}, f"{SET}.update.maxUnavailable", "1000000 is neither", id="more-away-than-a-cluster-can-have"),
    pytest.param({"nodePools[0].hardware.coresPerSocket": 70_000, "nodeSets[0].cpus": 66_000}, f"{SET}.cpus", "more than Slurm can count on a node (65533)", id="cpus-beyond-16-bits"),
    pytest.param({"nodePools[0].hardware.gpus.count": 2000, "nodeSets[1].gpus.count": 2000}, "cluster.nodeSets[1].gpus.count", "more than Slurm can count on a node (1024)", id="gpus-beyond-a-bitmap"),
]  # fmt: skip

PARTITIONS = [
    pytest.param(partition(DefMemPerCPU=4096), f"{PARTITION}.settings.DefMemPerCPU", "4096 MiB are more than a node of the partition has for jobs (2048)", id="default-memory-over-node"),
    pytest.param(partition(DefMemPerNode=4096), f"{PARTITION}.settings.DefMemPerNode", "none would start", id="default-memory-of-a-node-over-node"),
    pytest.param(partition(DefMemPerCPU="INFINITE"), f"{PARTITION}.settings.DefMemPerCPU", "INFINITE MiB are more", id="endless-default-memory"),
    pytest.param({"slurm": {"defaultMemoryPerCpuMiB": 4096}}, "cluster.slurm.defaultMemoryPerCpuMiB", 'more than a node of partition "main" has for jobs (2048 MiB)', id="default-memory-of-the-cluster-over-node"),
    pytest.param(partition(DefMemPerCPU=512, MaxMemPerCPU=256), f"{PARTITION}.settings.MaxMemPerCPU", "256 is less than what a job has that asks for none (DefMemPerCPU=512)", id="most-memory-below-default"),
    pytest.param(partition(DefMemPerNode=512, MaxMemPerNode=256), f"{PARTITION}.settings.MaxMemPerNode", "(DefMemPerNode=512)", id="most-memory-of-a-node-below-default"),
    pytest.param(partition(MaxMemPerCPU=100), f"{PARTITION}.settings.MaxMemPerCPU", "(DefMemPerCPU=1024)", id="most-memory-below-what-is-rendered"),
    pytest.param(partition(MaxMemPerCPU=2000, MaxMemPerNode=2000), f"{PARTITION}.settings.MaxMemPerCPU", "cannot be combined with MaxMemPerNode", id="two-memory-limits"),
    pytest.param(partition(MinNodes=3, MaxNodes=2), f"{PARTITION}.settings.MinNodes", "3 is more than MaxNodes (2)", id="least-nodes-over-most"),
    pytest.param(partition(MinNodes=5), f"{PARTITION}.settings.MinNodes", "5 is more than the partition's 4 nodes", id="least-nodes-over-all"),
    pytest.param(partition(MaxNodes=0), f"{PARTITION}.settings.MaxNodes", "0 would let no job start", id="no-nodes-for-any-job"),
    pytest.param({"partitions[0].maxTime": "0", "partitions[0].defaultTime": GONE}, f"{PARTITION}.maxTime", "leaves jobs no time at all", id="no-time-for-any-job"),
    pytest.param({"partitions[0].defaultTime": "00:00:00"}, f"{PARTITION}.defaultTime", "leaves jobs no time at all", id="no-time-by-default"),
    pytest.param(partition(AllowAccounts="research vision"), f"{PARTITION}.settings.AllowAccounts", "Give names with commas between them", id="accounts-apart-by-spaces"),
    pytest.param(partition(AllowAccounts="research;vision"), f"{PARTITION}.settings.AllowAccounts", "Give names with commas between them", id="accounts-apart-by-semicolons"),
    pytest.param(partition(DenyAccounts="@all"), f"{PARTITION}.settings.DenyAccounts", "Give names with commas between them", id="accounts-in-any-text"),
    pytest.param(partition(DenyAccounts="research,research"), f"{PARTITION}.settings.DenyAccounts", "has a name twice", id="denied-account-twice"),
    pytest.param(partition(AllowGroups="wheels"), f"{PARTITION}.settings.AllowGroups", 'no group of login.groups is called "wheels"', id="group-that-is-not-there"),
    pytest.param(partition(AllowAccounts="research", DenyAccounts="research"), f"{PARTITION}.settings.DenyAccounts", "Slurm then uses only AllowAccounts", id="accounts-allowed-and-denied"),
    pytest.param(partition(AllowQos="normal", DenyQos="long"), f"{PARTITION}.settings.DenyQos", "Slurm then uses only AllowQos", id="qos-allowed-and-denied"),
    pytest.param(partition(QOS="a,b"), f"{PARTITION}.settings.QOS", "Give a single name", id="two-qos-of-a-partition"),
    pytest.param({**partition(AllowAccounts="research"), "accounting": {"enabled": False}}, f"{PARTITION}.settings.AllowAccounts", "needs accounting", id="accounts-without-accounting"),
    pytest.param(partition(Alternate="mian"), f"{PARTITION}.settings.Alternate", 'no partition is called "mian". Did you mean "main"?', id="unknown-alternate"),
    pytest.param(partition(Alternate="main"), f"{PARTITION}.settings.Alternate", "is this partition itself", id="own-alternate"),
    pytest.param(partition(OverSubscribe="MAYBE"), f"{PARTITION}.settings.OverSubscribe", "Give NO, YES, FORCE", id="unknown-sharing"),
    pytest.param(partition(OverSubscribe="FORCE:0"), f"{PARTITION}.settings.OverSubscribe", "Give NO, YES, FORCE", id="shared-by-none"),
    pytest.param(partition(Exclusive="YES"), f"{PARTITION}.settings.Exclusive", "Give NO, NODE, USER or TOPO", id="exclusive-for-whom"),
    pytest.param(partition(OverTimeLimit="-5"), f"{PARTITION}.settings.OverTimeLimit", "nothing that Slurm reads", id="time-over-the-limit-below-zero"),
    pytest.param(partition(AllocNodes="login-[0"), f"{PARTITION}.settings.AllocNodes", "Give host names", id="broken-list-of-hosts"),
    pytest.param(partition(TRESBillingWeights="CPUs=1.0"), f"{PARTITION}.settings.TRESBillingWeights", '"cpus" is not a TRES. Did you mean "cpu"?', id="weight-of-no-tres"),
    pytest.param(partition(TRESBillingWeights="CPU:1.0"), f"{PARTITION}.settings.TRESBillingWeights", "Give TRES with their weights", id="weight-behind-a-colon"),
    pytest.param(partition(TRESBillingWeights="CPU=1,cpu=2"), f"{PARTITION}.settings.TRESBillingWeights", "says cpu twice", id="two-weights"),
    pytest.param(partition(TRESBillingWeights="GRES/gpu:a100=2"), f"{PARTITION}.settings.TRESBillingWeights", '"gres/gpu:a100" is not counted on this cluster. Did you mean "gres/gpu:h100"?', id="weight-of-gpus-that-no-node-has"),
    pytest.param(partition(PreemptMode="KILL"), f"{PARTITION}.settings.PreemptMode", '"KILL" is none of the words', id="unknown-preemption-of-a-partition"),
    pytest.param(partition(PreemptMode="REQUEUE"), f"{PARTITION}.settings.PreemptMode", "does nothing with PreemptType=preempt/none", id="preemption-of-a-partition-alone"),
    pytest.param(partition(GraceTime=60), f"{PARTITION}.settings.GraceTime", "does nothing with PreemptType=preempt/none", id="grace-without-preemption"),
    pytest.param({"partitions[2].settings": {"DefCpuPerGPU": 1}}, "cluster.partitions[2].settings.DefCpuPerGPU", "this partition has none", id="cpus-for-gpus-that-are-not-there"),
    pytest.param({"partitions[1].settings": {"DefCpuPerGPU": 3}}, "cluster.partitions[1].settings.DefCpuPerGPU", "3 for one GPU is more than a node of the partition has (2)", id="cpus-for-a-gpu-over-node"),
    pytest.param({"partitions[1].settings": {"DefMemPerGPU": 4096}}, "cluster.partitions[1].settings.DefMemPerGPU", "more than a node of the partition has (2048)", id="memory-for-a-gpu-over-node"),
    pytest.param({**partition(SelectTypeParameters="CR_Core"), "slurm": {"selectTypeParameters": "CR_CPU_Memory"}}, f"{PARTITION}.settings.SelectTypeParameters", "does nothing beside", id="selection-that-is-not-heeded"),
]  # fmt: skip

SLURM = [
    pytest.param(items("bf_contine"), f"{ITEMS}[0]", 'Did you mean "bf_continue"?', id="unknown-scheduler-parameter"),
    pytest.param(items("bf_window=0"), f"{ITEMS}[0]", "Give bf_window=a whole number from 1 to 43200", id="no-backfill-window"),
    pytest.param(items("bf_window"), f"{ITEMS}[0]", "does not say what bf_window is to be", id="window-without-a-number"),
    pytest.param(items("bf_window=a-week"), f"{ITEMS}[0]", "Give bf_window=a whole number", id="window-in-words"),
    pytest.param(items("bf_resolution=7200"), f"{ITEMS}[0]", "from 1 to 3600", id="resolution-over-an-hour"),
    pytest.param(items("bf_interval=-2"), f"{ITEMS}[0]", "or -1 for never", id="interval-below-zero"),
    pytest.param(items("bf_continue=yes"), f"{ITEMS}[0]", "bf_continue takes no value", id="value-of-a-switch"),
    pytest.param(items("bf_window=60", "bf_window=90"), f"{ITEMS}[1]", "which Slurm heeds alone", id="scheduler-parameter-twice"),
    pytest.param(settings(PriorityWeightTRES="CPU=1000,GPU=3000"), f"{SETTINGS}.PriorityWeightTRES", '"gpu" is not a TRES', id="priority-of-no-tres"),
    pytest.param(settings(PriorityWeightTRES="CPU"), f"{SETTINGS}.PriorityWeightTRES", "Give TRES with their weights", id="priority-without-a-weight"),
    pytest.param({**settings(Licenses="matlab:4"), "slurm.settings.PriorityWeightTRES": "license/matlab=5"}, f"{SETTINGS}.PriorityWeightTRES", '"license/matlab" is not counted on this cluster', id="priority-of-a-license-that-nobody-counts"),
    pytest.param({**settings(PriorityWeightTRES="CPU=1"), "accounting": {"enabled": False}}, f"{SETTINGS}.PriorityWeightTRES", "needs accounting", id="priority-of-tres-without-accounting"),
    pytest.param({**WITHOUT_GPUS, **settings(AccountingStorageTRES="license/matlab,lustre")}, f"{SETTINGS}.AccountingStorageTRES", '"lustre" is not a TRES', id="tracked-tres-that-is-none"),
    pytest.param({**WITHOUT_GPUS, **settings(AccountingStorageTRES="gres/gpu")}, f"{SETTINGS}.AccountingStorageTRES", 'no node has "gres/gpu"', id="tracked-gpus-that-are-not-there"),
    pytest.param(settings(Licenses="matlab:four"), f"{SETTINGS}.Licenses", "Give licenses with their count", id="licenses-in-words"),
    pytest.param(settings(PrivateData="jobs,usr"), f"{SETTINGS}.PrivateData", '"usr" is none of the words that Slurm knows here. Did you mean "user', id="unknown-private-data"),
    pytest.param(settings(DebugFlags="backfil"), f"{SETTINGS}.DebugFlags", 'Did you mean "Backfill"?', id="unknown-debug-flag"),
    pytest.param(settings(PriorityFlags="FAIR_TREE"), f"{SETTINGS}.PriorityFlags", "is the default since Slurm 19.05. Leave it out.", id="retired-priority-flag"),
    pytest.param(settings(PriorityFlags="FAIRTREE"), f"{SETTINGS}.PriorityFlags", "There are: ACCRUE_ALWAYS", id="no-hint-says-the-opposite"),
    pytest.param(settings(PriorityFlags="MAX_TRE"), f"{SETTINGS}.PriorityFlags", 'Did you mean "MAX_TRES"?', id="unknown-priority-flag"),
    pytest.param(settings(SlurmctldParameters="idle_on_node_suspend"), f"{SETTINGS}.SlurmctldParameters", "would lift the drains", id="item-that-harms"),
    pytest.param(settings(SlurmctldParameters="rl_enabled"), f"{SETTINGS}.SlurmctldParameters", 'Did you mean "rl_enable"?', id="item-misspelled"),
    pytest.param(settings(PrologFlags="RunInJob"), f"{SETTINGS}.PrologFlags", "is not possible here", id="prolog-flag-that-harms"),
    pytest.param(settings(AccountingStorageTRES="license"), f"{SETTINGS}.AccountingStorageTRES", '"license" is not a TRES', id="added-tres-that-is-none"),
    pytest.param(settings(BurstBufferType="burst_buffer/lua"), f"{SETTINGS}.BurstBufferType", "needs burst_buffer.lua. Add its text to slurm.files.", id="burst-buffer-without-its-script"),
    pytest.param({"topologies": [], **settings(TopologyPlugin="topology/tree")}, f"{SETTINGS}.TopologyPlugin", "needs topology.conf", id="topology-without-its-file"),
    pytest.param(alone(Prolog="site.sh"), f"{SETTINGS}.Prolog", '"site.sh" has no path, so slurmctld sends it', id="prolog-without-its-script"),
    pytest.param(settings(JobCompType="jobcomp/kafka"), f"{SETTINGS}.JobCompType", "Slipway's image has no plugin jobcomp/kafka", id="plugin-that-the-image-lacks"),
    pytest.param(files({"slurm.conf": "x=1"}), 'cluster.slurm.files["slurm.conf"]', "Slipway renders this file", id="file-that-is-rendered"),
    pytest.param(files({"burst_buffers.lua": "--"}), 'cluster.slurm.files["burst_buffers.lua"]', 'Did you mean "burst_buffer.lua"?', id="file-that-nothing-reads"),
    pytest.param(files({"site.sh": "date"}, **alone(Epilog="site.sh")), 'cluster.slurm.files["site.sh"]', "does not begin with #!", id="script-without-an-interpreter"),
    pytest.param(files({f"{name}.conf": "x" * 200_000 for name in ("mpi", "oci", "helpers")}), "cluster.slurm.files", "524288 are allowed", id="files-too-large"),
    pytest.param({"slurm": {"cgroupSettings": {"ConstrainCores": False}}}, "cluster.slurm.cgroupSettings.ConstrainCores", "Slipway itself depends on", id="cgroup-key-of-ours"),
    pytest.param({"slurm": {"cgroupSettings": {"CgroupJobIdPath": True}}}, "cluster.slurm.cgroupSettings.CgroupJobIdPath", 'Did you mean "CgroupJobIdPaths"?', id="cgroup-key-misspelled"),
    pytest.param(settings(LaunchParameters="use_interactive_stp"), f"{SETTINGS}.LaunchParameters", 'Did you mean "use_interactive_step"?', id="unknown-launch-parameter"),
    pytest.param(settings(DependencyParameters="kill_invalid_dep"), f"{SETTINGS}.DependencyParameters", 'Did you mean "kill_invalid_depend"?', id="unknown-dependency-parameter"),
    pytest.param(settings(JobAcctGatherParams="OverMemoryKil"), f"{SETTINGS}.JobAcctGatherParams", 'Did you mean "OverMemoryKill"?', id="unknown-accounting-parameter"),
    pytest.param(settings(AccountingStoreFlags="job_scrpt"), f"{SETTINGS}.AccountingStoreFlags", 'Did you mean "job_script"?', id="unknown-thing-to-store"),
    pytest.param(settings(TopologyParam="TopoOptonal"), f"{SETTINGS}.TopologyParam", 'Did you mean "TopoOptional"?', id="unknown-topology-parameter"),
    pytest.param(settings(ScronParameters="enabel"), f"{SETTINGS}.ScronParameters", 'Did you mean "enable"?', id="unknown-scron-parameter"),
    pytest.param(settings(PreemptType="preempt/qos", PreemptMode="REQUEUE", PreemptParameters="young_first"), f"{SETTINGS}.PreemptParameters", 'Did you mean "youngest_first"?', id="unknown-preempt-parameter"),
    pytest.param(settings(PropagateResourceLimits="MEM"), f"{SETTINGS}.PropagateResourceLimits", "none of the words", id="unknown-limit-to-inherit"),
    pytest.param(settings(PropagateResourceLimits="ALL,CORE"), f"{SETTINGS}.PropagateResourceLimits", "contains ALL, which cannot be combined with others", id="all-limits-and-others"),
    pytest.param({**networks(), **settings(TopologyPlugin="topology/trees")}, f"{SETTINGS}.TopologyPlugin", "Give topology/flat, topology/tree or topology/block", id="unknown-topology"),
    pytest.param(settings(JobCompType="jobcomp/text"), f"{SETTINGS}.JobCompType", "nothing that Slurm reads as JobCompType", id="unknown-job-completion"),
    pytest.param(settings(MCSPlugin="mcs/accounts"), f"{SETTINGS}.MCSPlugin", "nothing that Slurm reads as MCSPlugin", id="unknown-security-plugin"),
    pytest.param(settings(LogTimeFormat="iso"), f"{SETTINGS}.LogTimeFormat", '"iso" is none of the words', id="unknown-time-format"),
    pytest.param(settings(PreemptType="qos"), f"{SETTINGS}.PreemptType", "Give preempt/partition_prio or preempt/qos", id="unknown-preemption"),
    pytest.param(settings(PreemptType="preempt/qos"), f"{SETTINGS}.PreemptType", "needs to know what becomes of preempted jobs", id="preemption-that-does-nothing"),
    pytest.param(settings(PreemptMode="REQUEUE"), f"{SETTINGS}.PreemptMode", "needs a PreemptType", id="preemption-of-nobody"),
    pytest.param(settings(PreemptType="preempt/qos", PreemptMode="SUSPEND"), f"{SETTINGS}.PreemptMode", "needs GANG", id="suspended-for-ever"),
    pytest.param(settings(PreemptType="preempt/qos", PreemptMode="CANCEL,REQUEUE"), f"{SETTINGS}.PreemptMode", "exclude each other", id="cancelled-and-requeued"),
    pytest.param(raw("PreemptMode=REQUEUE"), f"{RAW}[0]", "needs a PreemptType", id="preemption-of-nobody-in-a-raw-line"),
    pytest.param(raw("PriorityWeightTRES=GPU=5"), f"{RAW}[0]", '"gpu" is not a TRES', id="priority-of-no-tres-in-a-raw-line"),
    pytest.param(settings(SlurmdParameters="l3cache_as_sockets_"), f"{SETTINGS}.SlurmdParameters", 'Did you mean "l3cache_as_socket"?', id="unknown-slurmd-parameter"),
    pytest.param(alone(HealthCheckProgram="/opt/check"), f"{SETTINGS}.HealthCheckProgram", "never runs: HealthCheckInterval is 0", id="health-check-that-never-runs"),
    pytest.param(alone(HealthCheckProgram="/opt/check", HealthCheckInterval=60), f"{SETTINGS}.HealthCheckInterval", "60 is not more than HealthCheckTimeout (60)", id="health-checks-on-top-of-each-other"),
    pytest.param(settings(HealthCheckNodeState="IDL"), f"{SETTINGS}.HealthCheckNodeState", 'Did you mean "IDLE"?', id="unknown-state-to-check"),
    pytest.param(settings(TaskProlog="prolog.sh"), f"{SETTINGS}.TaskProlog", "the whole path of a program", id="relative-program"),
    pytest.param(settings(FirstJobId=500, MaxJobId=400), f"{SETTINGS}.FirstJobId", "500 is more than MaxJobId (400)", id="first-job-after-the-last"),
    pytest.param(settings(SrunPortRange="60001"), f"{SETTINGS}.SrunPortRange", "Give two ports", id="single-port"),
    pytest.param(settings(SrunPortRange="63000-60001"), f"{SETTINGS}.SrunPortRange", "the lower first", id="ports-backwards"),
    pytest.param(settings(SrunPortRange="6000-7000"), f"{SETTINGS}.SrunPortRange", "Slurm's own daemons (6817 to 6820)", id="ports-of-slurm"),
    pytest.param(settings(RequeueExit="1-9;18"), f"{SETTINGS}.RequeueExit", "Give exit codes", id="exit-codes-apart-by-semicolons"),
    pytest.param(settings(MaxMemPerCPU=2000, MaxMemPerNode=2000), f"{SETTINGS}.MaxMemPerCPU", "cannot be combined with MaxMemPerNode", id="two-memory-limits-of-the-cluster"),
    pytest.param({"slurm": {"defaultMemoryPerCpuMiB": 512, "settings": {"MaxMemPerCPU": 256}}}, f"{SETTINGS}.MaxMemPerCPU", "256 is less than slurm.defaultMemoryPerCpuMiB (512)", id="most-memory-of-the-cluster-below-default"),
    pytest.param(raw("DownNodes=old-1 State=DOWN"), f"{RAW}[0]", 'no node is called "old-1". Add a line for it: NodeName=', id="down-node-that-is-not-there"),
    pytest.param(raw("NodeName=old-[1-3] CPUs=1", "PartitionName=old Nodes=old-[1-4]"), f"{RAW}[1]", 'no node is called "old-4"', id="partition-of-a-node-that-is-not-there"),
    pytest.param(raw("NodeSet=fast"), f"{RAW}[0]", "names no nodes", id="set-of-no-nodes"),
    pytest.param(raw("PartitionName=old Nodes=ALL OverSubscribe=MAYBE"), f"{RAW}[0]", '"MAYBE" is nothing that Slurm reads as OverSubscribe', id="unknown-sharing-in-a-raw-line"),
]  # fmt: skip

CLOUD = [
    pytest.param({"nodePools[0].eks.taints[+]": {"key": "nvidia.com/gpu", "value": "yes"}}, f"{POOL}.eks.taints[1]", '"nvidia.com/gpu" with effect NoSchedule is cluster.nodePools[0].eks.taints[0] already', id="taint-twice"),
    pytest.param({"nodePools[0].eks.taints[0].key": "node.kubernetes.io/gpu"}, f"{POOL}.eks.taints[0].key", "EKS sets no taints with", id="taint-of-kubernetes"),
    pytest.param({"nodePools[0].eks.labels": {"slipway.dev/pool": "x"}}, f"{POOL}.eks.labels.slipway.dev/pool", "is always set", id="own-label"),
    pytest.param({"nodePools[0].eks.labels": {"node-role.kubernetes.io/gpu": ""}}, f"{POOL}.eks.labels.node-role.kubernetes.io/gpu", "EKS sets no labels with", id="label-of-kubernetes"),
    pytest.param({"nodePools[1].eks.subnetIds[1]": "subnet-0a1b2c3d4e5f60718"}, "cluster.nodePools[1].eks.subnetIds[1]", "is listed twice", id="subnet-twice"),
    pytest.param({"nodePools[0].eks.securityGroupIds": ["sg-0a1b2c3d", "sg-0a1b2c3d"]}, f"{POOL}.eks.securityGroupIds[1]", "twice", id="security-group-twice"),
    pytest.param({"nodePools[1].eks.placementGroup": True}, "cluster.nodePools[1].eks.subnetIds", "a placement group lives in one zone", id="placement-group-over-zones"),
    pytest.param({"nodePools[1].eks.clusterName": "mll"}, "cluster.nodePools[1].eks.clusterName", '"mll" is not the cluster of cluster.nodePools[0] ("ml")', id="pools-in-two-clusters"),
    pytest.param({"nodePools[1].eks.amiType": "AL2023_x86_64_STANDRAD"}, "cluster.nodePools[1].eks.amiType", "not one of EKS' machine images", id="unknown-machine-image"),
    pytest.param({"nodePools[0].eks.diskGiB": 2}, f"{POOL}.eks.diskGiB", "2 is less than 20", id="disk-below-the-image"),
    pytest.param({"nodePools[0].eks.diskGiB": 100_000}, f"{POOL}.eks.diskGiB", "more than 65536", id="disk-over-any"),
    pytest.param({"gpuOperator.driver": True}, "cluster.gpuOperator.driver", "has the driver already. Say driver: false", id="driver-twice"),
    pytest.param({"storage.mounts[0].nfs.path": "/fsx/../etc"}, "cluster.storage.mounts[0].nfs.path", "holds `.` or `..`", id="export-that-climbs"),
    pytest.param({"login.service.sourceRanges": ["203.0.113.7"]}, "cluster.login.service.sourceRanges[0]", "not a network", id="address-for-a-network"),
    pytest.param({"login.service.sourceRanges": ["10.0.0.0/8", "10.0.0.0/8"]}, "cluster.login.service.sourceRanges[1]", "twice", id="network-twice"),
    pytest.param({"login.service.annotations": {"load balancer": "nlb"}}, "cluster.login.service.annotations", '"load balancer" is not a key of a Kubernetes annotation', id="annotation-with-a-space"),
    pytest.param({"login.ldap.uris": ["ldaps://ldap-1.example.com", "ldaps://LDAP-1.example.com:636"]}, "cluster.login.ldap.uris[1]", "twice", id="ldap-server-twice"),
    pytest.param({"login.ldap.uris": ["ldaps://ldap-1.example.com:389"]}, "cluster.login.ldap.uris[0]", "has the port of ldap://", id="ldaps-on-the-port-of-ldap"),
    pytest.param({"login.ldap.uris": ["ldap://ldap-1.example.com:636"], "login.ldap.startTls": True}, "cluster.login.ldap.uris[0]", "has the port of ldaps://", id="ldap-on-the-port-of-ldaps"),
    pytest.param({"accounting.purge.jobs": "99999hours"}, "cluster.accounting.purge.jobs", "at most 65535", id="age-beyond-16-bits"),
    pytest.param({"accounting.storage": GONE, "accounting.external": {"host": "db.example.com:3306", "passwordSecret": "db"}}, "cluster.accounting.external.host", "Its port has a key of its own", id="host-with-its-port"),
    pytest.param({"accounting.storage": GONE, "accounting.external": {"host": "0.0.0.0", "passwordSecret": "db"}}, "cluster.accounting.external.host", "the address of no machine", id="host-that-is-none"),
    pytest.param({"backup.restoreFrom": "2026-13-45T02-30-00Z"}, "cluster.backup.restoreFrom", "is not a valid time", id="restore-from-a-thirteenth-month"),
    pytest.param({"accounting.accounts[0].limits.priority": 5}, "cluster.accounting.accounts[0].limits.priority", "Say PriorityWeightAssoc", id="priority-of-an-account-without-weight"),
    pytest.param({"slurm.priorityWeights": {"qos": 0}}, "cluster.accounting.qos[0].priority", "slurm.priorityWeights.qos is 0", id="priority-of-a-qos-without-weight"),
    pytest.param(qos(limits={"minTresPerJob": "gres/gpu=8", "maxTresPerJob": "gres/gpu=4"}), "cluster.accounting.qos[1].limits.minTresPerJob", "asks for more gres/gpu than maxTresPerJob allows", id="least-of-a-job-over-most"),
    pytest.param({"accounting.accounts[0].groups": ["Research Group"]}, "cluster.accounting.accounts[0].groups[0]", '"Research Group" is not a name', id="group-of-the-directory-in-any-text"),
    pytest.param({"accounting.accounts[1].users": ["ada,grace"]}, "cluster.accounting.accounts[1].users[0]", '"ada,grace" is not a name', id="users-of-the-directory-in-any-text"),
    pytest.param(qos(usageThreshold=0.5), "cluster.accounting.qos[1].usageThreshold", "Add it to flags", id="threshold-without-its-flag"),
    pytest.param(qos(flags=["EnforceUsageThreshold"]), "cluster.accounting.qos[1].flags[0]", "Say usageThreshold", id="flag-without-its-threshold"),
    pytest.param(qos(usageThreshold=50, flags=["EnforceUsageThreshold"]), "cluster.accounting.qos[1].usageThreshold", "all jobs would be held", id="threshold-in-percent"),
    pytest.param(qos(preemptMode="cancel"), "cluster.accounting.qos[1].preemptMode", "does nothing with PreemptType=preempt/none", id="preemption-of-a-qos-alone"),
    pytest.param({**qos(preempt=["urgent"]), "accounting.qos[0].preempt": ["more"], **settings(PreemptType="preempt/qos", PreemptMode="CANCEL")}, "cluster.accounting.qos[0].preempt", "is preempted in turn", id="qos-that-preempt-each-other"),
]  # fmt: skip

REST = [
    pytest.param({"nodePools[0].existing.taints[+]": {"key": "slipway.dev/pool", "value": "workers"}}, f"{POOL}.existing.taints[1]", "Keep one", id="taint-of-existing-nodes-twice"),
    pytest.param({"systemNodes.taints": [{"key": "a"}, {"key": "a", "value": "b"}]}, "cluster.systemNodes.taints[1]", "Keep one", id="taint-of-system-nodes-twice"),
    pytest.param({"nodePools[+]": {"name": "more", "machine": "g6.xlarge", "max": 1, "existing": {"labels": {"slipway.dev/pool": "workers"}}}}, "cluster.nodePools[1].existing.labels", "each machine would count twice", id="two-pools-of-the-same-nodes"),
    pytest.param({"nodePools[0].existing.gpuResource": "amd.com/gpu", "nodeSets[1].simulatedGpus": False}, f"{POOL}.existing.gpuResource", "Say nvidia.com/gpu", id="gpus-of-another-maker"),
    pytest.param({"nodePools[0].existing.labels": {"slipway..dev/pool": "x"}}, f"{POOL}.existing.labels", "not a Kubernetes label key", id="label-with-two-dots"),
    pytest.param({"storage.home": {"claim": "home..data"}}, "cluster.storage.home.claim", "single dots between them", id="claim-with-two-dots"),
    *(pytest.param({"storage.sharedRoot": {"hostPath": "/srv/shared"}, "storage.home.hostPath": place}, "cluster.storage.home.hostPath", "is the node's own", id=f"homes-in{place.replace('/', '-')}") for place in ("/var", "/var/lib", "/var/lib/kubelet/pods", "/var/run/x", "/var/log", "/root")),
    pytest.param(nfs("hard", "soft"), "cluster.storage.mounts[0].nfs.options[1]", '"soft" contradicts the earlier "hard"', id="hard-and-soft"),
    pytest.param(nfs("nfsvers=4.1", "vers=3"), "cluster.storage.mounts[0].nfs.options[1]", '"vers=3" contradicts the earlier "nfsvers=4.1"', id="two-versions-of-nfs"),
    pytest.param(nfs("nfsvers=5"), "cluster.storage.mounts[0].nfs.options[0]", "is not a version of NFS", id="version-of-nfs-that-is-not-there"),
    pytest.param(nfs("timeo=5", "timeo=6"), "cluster.storage.mounts[0].nfs.options[1]", "contradicts", id="two-times-for-a-mount"),
    pytest.param(nfs("hard", "hard"), "cluster.storage.mounts[0].nfs.options[1]", "twice", id="mount-option-twice"),
    pytest.param(nfs("ro"), "cluster.storage.mounts[0].nfs.options[0]", "Say readOnly: true as well", id="mount-that-nobody-can-write"),
    pytest.param({"storage.home": {"nfs": {**NFS, "options": ["ro"]}}}, "cluster.storage.home.nfs.options[0]", "Users write there", id="homes-that-nobody-can-write"),
    pytest.param(nfs(server="10.0.0.256"), "cluster.storage.mounts[0].nfs.server", "not a host name or an IP address", id="address-beyond-255"),
    pytest.param(nfs(server="nfs.example.com:2049"), "cluster.storage.mounts[0].nfs.server", "Its port", id="nfs-server-with-its-port"),
    pytest.param(nfs(server="nfs..example.com"), "cluster.storage.mounts[0].nfs.server", "not a host name", id="host-with-two-dots"),
    pytest.param({"storage.mounts": [{**MOUNT, "nfs": NFS}, {"name": "b", "mountPath": "/b", "nfs": {**NFS, "path": "/export/"}}]}, "cluster.storage.mounts[1]", "same place", id="exports-that-differ-by-a-slash"),
    pytest.param({"storage.nfsServer": {"size": "1Ti", "clusterIP": "10.96.20.49", "networks": ["10.0.0.0/16", "10.0.0.0/16"]}, "storage.home": {"nfsServer": True}}, "cluster.storage.nfsServer.networks[1]", "twice", id="network-of-nodes-twice"),
    pytest.param(images("registry.example/Slipway/slurm:26.05"), "cluster.images.slurm", "not an image", id="image-in-capitals"),
    pytest.param(images("registry.example//slurm:26.05"), "cluster.images.slurm", "not an image", id="image-with-two-slashes"),
    pytest.param(images("slurm:26.05:1"), "cluster.images.slurm", "not an image", id="image-with-two-tags"),
    pytest.param({"images": {"slurm": IMAGE, "root": IMAGE, "controllers": IMAGE}}, "cluster.images.controllers", "is the image of the Slurm roles", id="one-image-for-both"),
    pytest.param({"images": {"slurm": IMAGE}}, "cluster.images.root", "filled from an image of its own", id="no-image-for-the-root"),
    pytest.param(smtp(tls="none", credentialsSecret="c"), f"{SMTP}.credentialsSecret", "would send its password readable", id="readable-password"),
    pytest.param(smtp(tls="none", caSecret="c"), f"{SMTP}.caSecret", "has nothing to verify", id="ca-without-tls"),
    pytest.param(smtp(port=465), f"{SMTP}.port", "is the port of `tls: tls`", id="port-of-tls"),
    pytest.param(smtp(tls="tls"), f"{SMTP}.port", "is the port of `tls: starttls`", id="port-of-starttls"),
    pytest.param(told(urlSecret=None), f"{RECEIVER}.urlSecret", "name a Secret whose key `url`", id="webhook-without-address"),
    pytest.param({"notifications": {**smtp()["notifications"], **told(kind="mail", to=["a@b.example"])["notifications"]}}, f"{RECEIVER}.urlSecret", "does nothing with kind: mail", id="mail-with-webhook"),
    pytest.param(told(kind="mail", urlSecret=None, to=["a@b.example"]), f"{RECEIVER}.kind", "give notifications.smtp", id="news-by-mail-without-relay"),
    pytest.param(told({"name": "chat", "urlSecret": "x"}), "cluster.notifications.receivers[1].name", "already", id="receiver-twice"),
    pytest.param(told(events=list[str]()), f"{RECEIVER}.events", "gets no news", id="no-event"),
    pytest.param(told(events=["jobEnd", "jobFail"]), f"{RECEIVER}.events", "which jobEnd includes", id="failures-twice"),
    pytest.param(told(events=["nodeDrain"], users=["alice"]), f"{RECEIVER}.users", "is about jobs", id="users-of-a-node"),
    pytest.param(told(events=["nodeDrain"], onlyAsked=True), f"{RECEIVER}.onlyAsked", "is about jobs", id="asked-of-a-node"),
    pytest.param({**told(), "accounting": {"enabled": False}}, f"{RECEIVER}.events", "come from accounting", id="ended-jobs-without-accounting"),
    pytest.param({**told(accounts=["vison"]), "accounting": {"accounts": [{"name": "vision"}]}}, f"{RECEIVER}.accounts[0]", 'Did you mean "vision"?', id="unknown-account"),
    pytest.param(told(users=["nobody-here"]), f"{RECEIVER}.users[0]", "no user of login.users", id="unknown-user-of-news"),
    pytest.param(told(partitions=["gpus"]), f"{RECEIVER}.partitions[0]", "no partition is called", id="unknown-partition-of-news"),
    pytest.param({**told(onlyAsked=True), **settings(AccountingStoreFlags="job_script")}, f"{RECEIVER}.onlyAsked", "leaves out job_comment", id="comments-that-are-not-kept"),
    pytest.param({**smtp(), **settings(MailProg="/bin/mail")}, f"{SETTINGS}.MailProg", "is set by notifications.smtp", id="two-mailers"),
    pytest.param(networks({}), f"{NETWORK}", "does not describe a network yet. Set `preset`, `tree` or `block`", id="topology-of-no-kind"),
    pytest.param(networks({"preset": "ec2", "tree": {"labels": ["a"]}}), f"{NETWORK}.tree", "cannot be combined with preset", id="topology-of-two-kinds"),
    pytest.param(networks({"tree": {"labels": []}}), f"{NETWORK}.tree.labels", "no node would have a place", id="tree-without-labels"),
    pytest.param(networks({"tree": {"labels": ["a", "a"]}}), f"{NETWORK}.tree.labels[1]", "twice", id="tree-with-a-label-twice"),
    pytest.param(networks({"preset": "ec2"}, {"preset": "gke"}), "cluster.topologies[1].name", "already", id="topologies-of-one-name"),
    pytest.param({**networks(), "partitions[0].topology": "fabric"}, f"{PARTITION}.topology", "Add it to cluster.topologies.", id="topology-of-no-list"),
    pytest.param({**networks({"preset": "ec2"}), "partitions[0].topology": "fabrik"}, f"{PARTITION}.topology", 'There are: net.', id="topology-misspelled"),
    pytest.param({**networks({"preset": "ec2"}), **settings(TopologyPlugin="topology/flat")}, f"{SETTINGS}.TopologyPlugin", "is ignored by Slurm beside", id="topology-plugin-beside"),
    pytest.param({"labelFeatures": ["a", "a"]}, "cluster.labelFeatures[1]", "twice", id="label-twice"),
    pytest.param(partition(Topology="fabric"), f"{PARTITION}.settings.Topology", "is rendered from other keys", id="topology-as-a-setting"),
    pytest.param({"images": {"pullSecrets": ["a", "a"]}}, "cluster.images.pullSecrets[1]", "twice", id="pull-secret-twice"),
    pytest.param(check(schedule="*/90 * * * *"), "cluster.healthChecks[8].schedule", '"*/90" never takes its step', id="every-ninety-minutes"),
    pytest.param(check(schedule="0 0 30 2 *"), "cluster.healthChecks[8].schedule", "never comes", id="thirtieth-of-february"),
    pytest.param(check(settings={"minFreePercent": 100}), "cluster.healthChecks[8].settings.minFreePercent", "would drain every node", id="empty-disk-wanted"),
    pytest.param({"login.users[0].sshKeyFiles": ["a.pub", "a.pub"], "login.users[0].sshKeys": GONE}, "cluster.login.users[0].sshKeyFiles[1]", "twice", id="key-file-twice"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "part"), [*NODES, *PARTITIONS, *SLURM, *REST])
def test_value_that_means_nothing_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = [each for each in faults("dev", edits) if "is not there. `make up` makes it" not in each[1]]
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


@pytest.mark.parametrize(("edits", "path", "part"), CLOUD)
def test_value_that_means_nothing_in_the_cloud_is_one_fault(edits: dict[str, Any], path: str, part: str) -> None:
    found = faults("h100", edits)
    assert [each for each, _ in found] == [path], found
    assert part in found[0][1]


def test_there_are_enough_of_them() -> None:
    """The contract of issue 13: 69 at least."""
    assert len([*NODES, *PARTITIONS, *SLURM, *REST, *CLOUD]) >= 69


@pytest.mark.parametrize(("name", "edits"), SOUND)
def test_value_that_means_something_is_accepted(name: str, edits: dict[str, Any]) -> None:
    assert cluster(name, edits)
