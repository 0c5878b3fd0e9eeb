"""The keys that Slurm 26.05 knows in slurm.conf, on a node line and on a partition line.

Slurm refuses to start on a key it does not know, so a typing mistake must be found before. Source of the lists: slurm.conf(5) of 26.05 and
the parser's own tables; tests/slurm/test_render.py has the real parser read every one of them.
"""

from collections.abc import Mapping

from slurm.conf import number_of, pairs_of

GLOBAL_KEYS = frozenset(
    """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost AccountingStorageParameters
    AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo
    AuthType BatchStartTimeout BcastExclude BcastParameters BurstBufferType CertgenParameters CertgenType CertmgrParameters CertmgrType
    CliFilterParameters CliFilterPlugins ClusterName CommunicationParameters CompleteWait CpuFreqDef CpuFreqGovernors CredType
    DataParserParameters DebugFlags DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs EioTimeout
    EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld EpilogTimeout FairShareDampeningFactor FederationParameters FirstJobId
    GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval HealthCheckNodeState HealthCheckProgram
    HealthCheckTimeout HttpParserType InactiveLimit InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType
    JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser JobFileAppend
    JobRequeue JobSubmitPlugins KillOnBadExit KillWait LaunchParameters LicenseParameters Licenses LogTimeFormat MailDomain MailProg
    MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode
    MCSParameters MCSPlugin MessageTimeout MetricsAuthUsers MetricsParameters MetricsType MinJobAge MpiDefault MpiParams NamespaceType
    NodeFeaturesPlugins OverTimeLimit PluginDir PlugStackConfig PreemptExemptTime PreemptMode PreemptParameters PreemptType PrEpParameters
    PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters
    PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc
    PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType
    Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess PropagateResourceLimits
    PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate
    ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters
    SelectType SelectTypeParameters SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldHttpAuthParameters SlurmctldLogFile
    SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout
    SlurmdDebug SlurmdHttpAuthParameters SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug
    SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
    SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout SwitchParameters SwitchType
    TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout TLSParameters TLSType TmpFS TopologyParam TopologyPlugin TrackWCKey
    TreeWidth UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM VSizeFactor WaitTime X11Parameters
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)

NODE_KEYS = frozenset(
    """
    BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CpuSpecList Feature Features Gres MemSpecLimit NodeAddr NodeHostname
    NodeName Parameters Port RealMemory Reason RestrictedCoresPerGPU Sockets SocketsPerBoard State SuspendTime ThreadsPerCore TmpDisk
    Topology TRESWeights Weight
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)

PARTITION_KEYS = frozenset(
    """
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode
    DenyAccounts DenyQos DisableRootJobs Exclusive GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU
    MaxMemPerNode MaxNodes MaxTime MinNodes Nodes OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode PriorityJobFactor
    PriorityTier QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters State SuspendTime SuspendTimeout Topology TRESBillingWeights
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)

LINE_KEYS = frozenset({"NodeName", "PartitionName", "NodeSet", "DownNodes", "PowerAction"})
"""Keys that start a line of their own kind and may come many times."""

OWN_NODE_KEYS = frozenset(
    """
    BcastAddr Boards CoresPerSocket CPUs Feature Features Gres NodeAddr NodeHostname NodeName Port RealMemory Reason Sockets SocketsPerBoard
    State SuspendTime ThreadsPerCore Topology
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)
"""Keys of a node line that come from a node set's own fields, or that would break the set where a user set them."""

OWN_PARTITION_KEYS = frozenset(
    """
    Default DefaultTime MaxTime Nodes PartitionName PriorityTier ResumeTimeout State SuspendTime SuspendTimeout
    Topology
    """.split()  # noqa: SIM905 - words read better than a thousand quotes
)
"""The same of a partition line."""

RESERVED_KEYS: Mapping[str, str] = {
    "AuthInfo": "it names munged's socket, which is at a fixed path in all pods, and the lifetime of jobs' credentials",
    "CertgenParameters": "the image has no TLS plugin, and slurmctld would not start",
    "CertgenType": "the image has no TLS plugin, and slurmctld would not start",
    "CertmgrParameters": "the image has no TLS plugin, and slurmctld would not start",
    "CertmgrType": "the image has no TLS plugin, and slurmctld would not start",
    "DataParserParameters": "health checks read Slurm's JSON in the form that this release has by default",
    "HttpParserType": "the probes of slurmctld and the figures at login come over HTTP",
    "MaxNodeCount": "the node sets determine the number of nodes",
    "MetricsAuthUsers": "login pods read slurmctld's figures without a key, and would show none",
    "NamespaceType": "the shared root's plugin gives each job its own /tmp, and two of them would hide each other's",
    "PlugStackConfig": "Slipway renders plugstack.conf, with the plugin that puts jobs into the shared root",
    "PluginDir": "the image has Slurm's plugins in one folder",
    "PrEpPlugins": "the plugin prep/script runs the prologs and epilogs that jobs on elastic nodes wait in",
    "ReconfigFlags": "slurmctld would not take over a change of partitions in the stack file",
    "SlurmctldAddr": "clients find slurmctld by the name of its Service",
    "SlurmctldHttpAuthParameters": "the probes of slurmctld and the figures at login come over HTTP without a key",
    "SlurmctldLogFile": "slurmctld logs to its container's output",
    "SlurmdLogFile": "slurmd logs to its container's output",
    "SuspendExcParts": "size and min of the node sets determine which nodes stay up",
    "SuspendExcStates": "size and min of the node sets determine which nodes stay up",
    "TLSParameters": "the image has no TLS plugin, and slurmctld would not start",
    "TLSType": "the image has no TLS plugin, and slurmctld would not start",
    "UrlParserType": "the probes of slurmctld and the figures at login come over HTTP",
}
"""Keys that are not rendered, and may not be set either: each would undo a promise. What it would undo."""

ROOT_JOBS = "DisableRootJobs"
"""A switch, of the cluster and of partitions, that may not be set to no. Otherwise root of a login session would be root on workers."""
_NO = frozenset({"no", "false", "0", "down"})


def allows_root_jobs(key: str, value: str) -> bool:
    """True for a line that lets root submit jobs. Source: s_p_handle_boolean of Slurm's src/common/parse_config.c."""
    return key.lower() == ROOT_JOBS.lower() and value.lower() in _NO


SLURMCTLD_PARAMETERS = ("enable_configless", "reconfig_on_restart")
"""Items of SlurmctldParameters on every cluster."""

_NO_STEPMGR = "Slipway's plugins have not been tried with it"
RESERVED_ITEMS: Mapping[str, Mapping[str, str]] = {
    "PrologFlags": {
        "NoHold": "Slurm refuses it beside Contain",
        "X11": "neither the image nor sshd of login nodes is made for X11 forwarding",
        "RunInJob": "prologs would run inside the job's limits, where health checks cannot reach the node",
    },
    "SlurmctldParameters": {
        "allow_user_triggers": "it has no effect with SlurmUser=slurm",
        "cloud_dns": "nodes register with their pods' addresses, and powered-down nodes have no name in DNS",
        "cloud_reg_addrs": "Slurm 26.05 always does so",
        "enable_stepmgr": _NO_STEPMGR,
        "idle_on_node_suspend": "it would lift the drains that keep faulty nodes out of service",
        "no_quick_restart": "slurmctld's program restarts it",
        "power_save_interval": "the NodeSet controller relies on the rendered value",
    },
}
"""Items of lists that Slurm knows and Slipway does not accept, by key, with the reason."""

CGROUP_KEYS = frozenset(
    """
    AllowedRAMSpace AllowedSwapSpace CgroupJobIdPaths CgroupSlice ConstrainSwapSpace EnableExtraControllers MaxRAMPercent MaxSwapPercent
    MemorySwappiness MinRAMSpace SignalChildrenProcesses SystemdTimeout
    """.split()  # noqa: SIM905 - words read better than quotes
)
"""Keys of cgroup.conf that a stack may set. Source: cgroup.conf(5) of 26.05."""

OWN_CGROUP_KEYS = frozenset(
    {"CgroupMountpoint", "CgroupPlugin", "ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace", "EnableControllers", "IgnoreSystemd"}
)
"""Keys of cgroup.conf that Slipway renders, or that would break a worker's pod."""


def is_same_value(key: str, value: str, rendered: Mapping[str, str]) -> bool:
    """True where a rendered file sets the key to the same value, however it is written: `YES` and `1`, `30` and `030`."""
    before = rendered.get(key.lower())
    if before is None:
        return False
    return _plain(before) == _plain(value) or {*before.lower().split(",")} == {*value.lower().split(",")}


def _plain(value: str) -> str:
    number = number_of(value)
    return str(number) if number is not None else {"yes": "1", "true": "1", "no": "0", "false": "0"}.get(value.lower(), value.lower())


def rendered_keys(text: str) -> dict[str, str]:
    """First key of each line of a rendered file, in lower case (keys are case-insensitive), with its value."""
    firsts = (pairs[0] for line in text.splitlines() if (pairs := pairs_of(line)))
    return {key.lower(): value for key, value in firsts}
