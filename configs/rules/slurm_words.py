"""Words and lists of words that Slurm 26.05 knows, by key, and texts with their own format. Slurm silently ignores most unknown words: a
misspelled PrivateData=job hides nothing. Source: slurm.conf(5) of 26.05.5, and slurmctld's answers (tests/slurm/test_words.py). Left out:
plugins and scripts that a custom image may add (JobSubmitPlugins, CliFilterPlugins, MpiDefault)."""

from collections.abc import Mapping

from configs.rules.slurm_types import GLOBAL_TYPES, NODE_TYPES, PARTITION_TYPES, Items, Number, Text, Value, Words, all_of


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _number(most: int, least: int = 0) -> Number:
    return Number(most, least, endless=False)


def _plugins(kind: str, names: str) -> Words:
    """Plugins that come with Slurm; older files write `none` for no plugin."""
    return Words(tuple(f"{kind}/{name}" for name in names.split()), (f"{kind}/none",))


_ANY = _number(2**31 - 1)
_JOBS = _number(1_000_000)
_MICROSECONDS = _number(10_000_000, 1)

SCHEDULER_PARAMETERS = Items(
    _words(
        """
        allow_zero_lic assoc_limit_stop bf_allow_magnetic_slot bf_busy_nodes bf_continue bf_hetjob_immediate bf_licenses bf_one_resv_per_job
        bf_running_job_reserve bf_topopt_enable defer defer_batch disable_hetjob_steps disable_job_shrink
        enable_user_top extra_constraints ignore_constraint_validation Ignore_NUMA ignore_prefer_validation no_backup_scheduling
        nohold_on_prolog_fail pack_serial_at_end reduce_completing_frag requeue_on_resume_failure salloc_wait_nodes sbatch_wait_nodes
        spec_cores_first time_min_as_soft_limit whole_hetjob
        """
    ),
    {
        "batch_sched_delay": _ANY,
        "bb_array_stage_cnt": _ANY,
        "bf_hetjob_prio": Words(("min", "avg", "max")),
        "bf_interval": Text(r"-1|[1-9]\d{0,3}|10[0-7]\d\d|10800", "a number of seconds from 1 to 10800, or -1 for never"),
        "bf_job_part_count_reserve": _number(100_000),
        "bf_max_job_array_resv": _number(1000),
        "bf_max_job_assoc": _JOBS,
        "bf_max_job_part": _JOBS,
        "bf_max_job_start": _number(10_000),
        "bf_max_job_test": _number(1_000_000, 1),
        "bf_max_job_user": _JOBS,
        "bf_max_job_user_part": _JOBS,
        "bf_max_time": _number(3600, 1),
        "bf_min_age_reserve": _number(2_592_000),
        "bf_min_prio_reserve": _number(2**63),
        "bf_node_space_size": _number(2_000_000, 2),
        "bf_resolution": _number(3600, 1),
        "bf_topopt_iterations": _ANY,
        "bf_window": _number(43_200, 1),
        "bf_window_linear": _ANY,
        "bf_yield_interval": _MICROSECONDS,
        "bf_yield_rpc_cnt": _number(200),
        "bf_yield_rpc_count": _number(200),
        "bf_yield_sleep": _MICROSECONDS,
        "build_queue_timeout": _ANY,
        "correspond_after_task_cnt": _ANY,
        "default_queue_depth": _ANY,
        "delay_boot": Text(r"[\d:-]+", "a time in minutes, as in 5 or 00:05:00"),
        "max_array_tasks": _ANY,
        "max_rpc_cnt": _number(1000),
        "max_rpc_count": _number(1000),
        "max_sched_time": _ANY,
        "max_script_size": _ANY,
        "max_submit_line_size": _ANY,
        "max_switch_wait": _ANY,
        "partition_job_depth": _ANY,
        "requeue_delay": _ANY,
        "sched_interval": Text(r"-1|\d{1,9}", "a number of seconds, or -1 for never"),
        "sched_max_job_start": _ANY,
        "sched_min_interval": _ANY,
        "step_retry_count": _ANY,
        "step_retry_time": _ANY,
    },
    more=_words("enable_hetjob_steps whole_pack"),
)
"""Items of SchedulerParameters, with their bounds."""

SLURMD_PARAMETERS = Items(
    _words("allow_ecores config_overrides conmgr_use_poll contain_spank l3cache_as_socket numa_node_as_socket shutdown_on_reboot"),
    dict.fromkeys(
        _words(
            """
            conmgr_connect_timeout conmgr_max_connections conmgr_quiesce_timeout conmgr_read_timeout conmgr_threads
            conmgr_wait_write_delay conmgr_write_timeout
            """
        ),
        _ANY,
    ),
)

_LIMITS = Items(_words("ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK"))
_PREEMPT = Items(_words("OFF CANCEL GANG REQUEUE SUSPEND PRIORITY WITHIN"), more=_words("CLUSTER ON"))
_CPU_BIND = Words(("none", "socket", "ldom", "core", "thread"), ("no", "off", "sockets", "ldoms", "cores", "threads"))
_NAMES = r"[a-z0-9_][\w.-]*(?:,[a-z0-9_][\w.-]*)*"
_HOSTS = r"[a-z0-9_][\w.-]*(?:\[[\d,-]+\][\w.-]*)?"
_EXIT_CODES = Text(r"\d{1,3}(?:-\d{1,3})?(?:,\d{1,3}(?:-\d{1,3})?)*", "exit codes and ranges of them, as in 1-9,18")
_PROGRAM = Text(r"/\S.*", "the whole path of a program, from the root: nothing looks for it elsewhere")
_WEIGHT = r"[a-z]+(?:/[^=,\s]+)?=[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[KMGTP]?"
TRES_WEIGHTS = Text(
    f"{_WEIGHT}(?:,{_WEIGHT})*",
    "TRES with their weights, as in CPU=1.0,Mem=0.25G,GRES/gpu=8",
)

GLOBAL_VALUES: Mapping[str, Value] = {
    **GLOBAL_TYPES,
    **all_of(_EXIT_CODES, "RequeueExit RequeueExitHold"),
    **all_of(_LIMITS, "PropagateResourceLimits PropagateResourceLimitsExcept"),
    **all_of(
        _PROGRAM,
        "EpilogSlurmctld HealthCheckProgram MailProg SrunEpilog SrunProlog TaskEpilog TaskProlog UnkillableStepProgram",
    ),
    "AccountingStorageTRES": Text(r"[^\s,]+(?:,[^\s,]+)*", "TRES with commas between them, as in license/matlab,fs/lustre"),
    "AccountingStoreFlags": Items(_words("job_comment job_env job_extra job_script no_stdio")),
    "AcctGatherEnergyType": _plugins("acct_gather_energy", "gpu ipmi pm_counters rapl xcc"),
    "AcctGatherFilesystemType": _plugins("acct_gather_filesystem", "lustre"),
    "AcctGatherInterconnectType": _plugins("acct_gather_interconnect", "ofed sysfs"),
    "AcctGatherProfileType": _plugins("acct_gather_profile", "hdf5 influxdb"),
    "BurstBufferType": _plugins("burst_buffer", "datawarp lua"),
    "DebugFlags": Items(
        _words(
            """
            Accrue Agent AuditRPCs AuditTLS Backfill BackfillMap BurstBuffer Cgroup ConMgr CPU_Bind CpuFrequency Data DBD_Agent Dependency
            Elasticsearch Energy Federation Gang GLOB_SILENCE Gres Hetjob JobAccountGather JobComp License Metrics Namespace Network
            NetworkRaw NodeFeatures NO_CONF_HASH Power Priority Profile Protocol Reservation Route Script SelectType Steps Switch thread TLS
            TraceJobs Triggers
            """
        ),
    ),
    "DependencyParameters": Items(_words("disable_remote_singleton kill_invalid_depend"), {"max_depend_depth": _ANY}),
    "HashPlugin": _plugins("hash", "k12 sha3"),
    "HealthCheckNodeState": Items(_words("ALLOC ANY CYCLE IDLE MIXED NONDRAINED_IDLE REBOOT_ONLY START_ONLY")),
    "JobAcctGatherParams": Items(_words("DisableGPUAcct no_file_cache NoShared OverMemoryKill UsePss")),
    "JobCompType": _plugins("jobcomp", "elasticsearch filetxt kafka lua mysql script"),
    "LaunchParameters": Items(
        _words(
            """
            batch_step_set_cpu_freq disable_send_gids enable_nss_slurm interactive_step_set_cpu_freq mpir_use_nodeaddr slurmstepd_memlock
            slurmstepd_memlock_all srun_exclusive_allocation test_exec ulimit_pam_adopt use_interactive_step
            """
        ),
        more=_words("cray_net_exclusive lustre_no_flush"),
    ),
    "Licenses": Text(r"[\w.@/-]+(?:[:=]\d{1,9})?(?:,[\w.@/-]+(?:[:=]\d{1,9})?)*", "licenses with their count, as in matlab:4,ansys"),
    "LogTimeFormat": Items(_words("iso8601 iso8601_ms rfc5424 rfc5424_ms rfc3339 clock short thread_id"), more=("format_stderr",)),
    "MCSPlugin": _plugins("mcs", "account group label user"),
    "PreemptMode": _PREEMPT,
    "PreemptParameters": Items(
        _words("reclaim_licenses send_user_signal strict_order youngest_first"),
        {"min_exempt_priority": _number(2**32 - 1), "reorder_count": _ANY, "suspend_grace_time": _ANY},
    ),
    "PreemptType": _plugins("preempt", "partition_prio qos"),
    "PriorityFlags": Items(
        _words(
            """
            ACCRUE_ALWAYS CALCULATE_RUNNING DEPTH_OBLIVIOUS INCR_ONLY MAX_TRES MAX_TRES_GRES NO_FAIR_TREE NO_NORMAL_ALL NO_NORMAL_ASSOC
            NO_NORMAL_PART NO_NORMAL_QOS NO_NORMAL_TRES SMALL_RELATIVE_TO_TIME
            """
        ),
        retired={"FAIR_TREE": "is the default since Slurm 19.05. Leave it out."},
    ),
    "PriorityWeightTRES": TRES_WEIGHTS,
    "PrivateData": Items(
        _words("accounts events jobs nodes partitions reservations usage users"),
        more=_words("account event job node partition reservation user all none cloud"),
    ),
    "PrologFlags": Items(_words("Alloc Contain DeferBatch ForceRequeueOnFail Serial")),
    "ScronParameters": Items(_words("enable explicit_scancel")),
    "SlurmctldParameters": Items(
        _words(
            """
            conmgr_use_poll disable_triggers enable_async_reply enable_configless enable_expedited_requeue reboot_from_controller
            reconfig_on_restart rl_enable user_resv_delete
            """
        ),
        {
            **dict.fromkeys(_words("conmgr_connect_timeout conmgr_max_connections conmgr_quiesce_timeout conmgr_read_timeout"), _ANY),
            **dict.fromkeys(_words("conmgr_threads conmgr_wait_write_delay conmgr_write_timeout"), _ANY),
            **dict.fromkeys(_words("max_powered_nodes power_save_min_interval"), _ANY),
            **dict.fromkeys(_words("rl_bucket_size rl_refill_period rl_refill_rate rl_table_size"), _ANY),
            "max_dbd_msg_action": Words(("discard", "exit")),
            "node_reg_mem_percent": _number(100),
            "validate_nodeaddr_threads": _number(64, 1),
        },
        retired={"rl_log_freq": "is in Slurm's manual, but slurmctld 26.05 ignores it. Remove it."},
    ),
    "SlurmdParameters": SLURMD_PARAMETERS,
    "SrunPortRange": Text(r"\d{1,5}-\d{1,5}", "two ports, as in 60001-63000"),
    "SuspendExcNodes": Text(f"{_HOSTS}(?::\\d+)?(?:,{_HOSTS}(?::\\d+)?)*", "nodes with commas between them, as in cpu-[0-3],gpu-0"),
    "SwitchType": _plugins("switch", "hpe_slingshot nvidia_imex"),
    "TopologyParam": Items(
        _words("BlockAsNodeRank Dragonfly RoutePart RouteTree SwitchAsNodeRank TopoOptional"),
        {"TopoMaxSizeUnroll": Text(r"-1|\d+", "a number")},
    ),
    "TopologyPlugin": _plugins("topology", "flat tree block"),
}
"""Of slurm.conf."""

NODE_VALUES: Mapping[str, Value] = {
    **NODE_TYPES,
    **all_of(_number(2**16 - 1), "CoreSpecCount RestrictedCoresPerGPU"),
    "MemSpecLimit": _number(2**64 - 1),
    "TmpDisk": _number(2**32 - 1),
    "CpuBind": _CPU_BIND,
    "CpuSpecList": Text(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*", "CPUs by number, as in 0,1 or 0-3"),
    "Parameters": SLURMD_PARAMETERS,
    "TRESWeights": TRES_WEIGHTS,
}
"""Of a node line. Slurm reads INFINITE as a number here, too, and nothing on a machine is that."""

PARTITION_VALUES: Mapping[str, Value] = {
    **PARTITION_TYPES,
    **all_of(
        Text(_NAMES, "names with commas between them, as in research,vision"),
        "AllowAccounts AllowGroups AllowQos DenyAccounts DenyQos",
    ),
    **all_of(Text(r"[a-z0-9_][\w.-]*", "a single name"), "Alternate QOS"),
    "AllocNodes": Text(f"{_HOSTS}(?:,{_HOSTS})*", "host names, as in login-0,login-[2-3], or ALL"),
    "CpuBind": _CPU_BIND,
    "Exclusive": Words(("NO", "NODE", "USER", "TOPO")),
    "OverSubscribe": Text(
        r"NO|EXCLUSIVE|YES(?::(?:[2-9]|[1-9]\d{1,3}))?|FORCE(?::[1-9]\d{0,3})?",
        "NO, YES, FORCE, or how many jobs may share a CPU, as in YES:4 or FORCE:4",
    ),
    "OverTimeLimit": Number(65_533),
    "PreemptMode": _PREEMPT,
    "SelectTypeParameters": Words(("CR_Core", "CR_Core_Memory", "CR_Socket", "CR_Socket_Memory")),
    "TRESBillingWeights": TRES_WEIGHTS,
}
"""Of a partition line."""
