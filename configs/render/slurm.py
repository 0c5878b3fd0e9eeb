"""Renders a config as Slurm's files. Pure: the same config gives the same text. Passwords are left out; start scripts add them from
Secrets.

A node set is one line whatever its size. The wording is in templates/; what is computed is here.
"""

from collections.abc import Mapping

from configs.models.accounting import Accounting, Purge
from configs.models.cluster import Cluster
from configs.models.fields import camel
from configs.models.node_set import Gpus, NodeSet
from configs.models.partition import Partition
from configs.models.shapes import gpu_groups, shape_of
from configs.models.slurm_keys import SLURMCTLD_PARAMETERS, is_same_value, rendered_keys
from configs.render import gpu_jobs, health_checks
from configs.render.billing import KEY, billing_weights, gpu_gib
from configs.render.check_partition import checks_partition, partition_keys
from configs.render.shared_root import volume_places
from configs.render.topology import render_topology
from configs.render.wording import template
from names import paths, ports
from slurm import prologs
from slurm.conf import known, pairs_of, setting
from slurm.mig import device_files

PORTS: Mapping[str, int] = {"slurmctld": ports.SLURMCTLD, "slurmd": ports.SLURMD, "slurmdbd": ports.SLURMDBD}

REFUSALS = ("job_submit.lua", "cli_filter.lua")
"""One Lua script under two names, as slurmctld and the clients each read their own. It refuses options of a job that Slurm would accept
and then ignore on this cluster."""
NO_MAIL = "/bin/true"
"""MailProg of a cluster that sends no mail: the image has no mailer."""
MAILER = f"{paths.SCRIPTS}/mail.sh"
"""MailProg of a cluster with `notifications.smtp`: it hands each mail over to programs/mail."""

DEFAULTS: Mapping[str, str] = {
    "AccountingStoreFlags": "job_comment,job_script",
    "CliFilterPlugins": "lua",
    "DisableRootJobs": "YES",
    "EnforcePartLimits": "ALL",
    "InactiveLimit": "0",
    "JobAcctGatherFrequency": "30",
    "JobSubmitPlugins": "lua",
    "LaunchParameters": "use_interactive_step",
    "LogTimeFormat": "iso8601_ms",
    "MailProg": NO_MAIL,
    "MpiDefault": "pmi2",
    "PropagateResourceLimitsExcept": "AS,MEMLOCK,NPROC",
    "ScronParameters": "enable",
    "UnkillableStepTimeout": "180",
}
"""Settings that a cluster gets unless `slurm.settings` says otherwise. DisableRootJobs: root in a worker's pod is root on the machine,
and login sessions may have a root of their own. EnforcePartLimits: a job that can never run is refused at once.
AccountingStoreFlags, where there is accounting: `sacct -B -j JOB` shows what was run. The two plugins of Lua run the script of refusals.
PropagateResourceLimitsExcept: limits of a login pod are for logins, and a container runtime should not limit the memory that RDMA locks."""

LISTS = ("AccountingStorageTRES", "PrologFlags", "SlurmctldParameters")
"""Keys whose items are Slipway's, followed by those that `slurm.settings` adds."""
REPEATED = ("Prolog", "Epilog")
"""Keys that may stand several times: Slurm runs the scripts of all lines. Slipway's own come first. Source: slurm.conf(5), Prolog."""
_NOHOLD = "nohold_on_prolog_fail"
ARCHIVE = "/archive"
"""Where slurmdbd has the volume of its archives."""
CA_FILE = paths.DATABASE_CA
"""Where slurmdbd has the certificate that an external database is checked with, if the user gives one."""
SYSTEM_CA_FILE = "/etc/ssl/certs/ca-certificates.crt"

_ARCHIVED = {
    "events": "Events",
    "jobs": "Jobs",
    "jobScript": "JobScript",
    "jobEnv": "JobEnv",
    "resvs": "Resvs",
    "steps": "Steps",
    "suspend": "Suspend",
    "txn": "TXN",
    "usage": "Usage",
}
"""Kinds of records in the words of ArchiveX; those of PurgeXAfter are the same in the singular."""
_PURGED = {record: word if word in ("TXN", "Usage", "Suspend") else word.removesuffix("s") for record, word in _ARCHIVED.items()}
_CGROUP_PLUGINS = {"auto": "autodetect", "v1": "cgroup/v1", "v2": "cgroup/v2"}

# Where the devices of a vendor start: /dev/nvidia0, /dev/dri/renderD128.
_DEVICE_FILES = {"nvidia": ("/dev/nvidia", 0), "amd": ("/dev/dri/renderD", 128)}


def render(cluster: Cluster) -> dict[str, str]:
    """Slurm's files by name. slurmctld and slurmrestd read them; all other daemons fetch them from slurmctld."""
    nodes = template("nodes.conf.j2").render(
        nodes=[node_line(cluster, node_set) for node_set in cluster.node_sets if node_set.ordinals],
        partitions=[partition_line(cluster, partition) for partition in cluster.partitions],
        checks=checks_line(cluster),
        hindrance=checks_partition(cluster).hindrance,
        raw=_raw_lines(cluster),
    )
    gres = [
        line
        for node_set in cluster.node_sets
        if node_set.ordinals and node_set.gpus
        for line in gres_lines(cluster, node_set, node_set.gpus)
    ]
    return {
        "slurm.conf": render_settings(cluster) + nodes,
        "cgroup.conf": template("cgroup.conf.j2").render(
            plugin=_CGROUP_PLUGINS[cluster.slurm.cgroup_version], settings=_lines(cluster.slurm.cgroup_settings)
        ),
        "gres.conf": template("gres.conf.j2").render(lines=gres),
        "plugstack.conf": template("plugstack.conf.j2").render(
            containers=cluster.slurm.containers, efficiency_report=cluster.slurm.efficiency_report
        ),
        **render_topology(cluster, [*(nodes for node_set in cluster.node_sets if (nodes := hostlist(node_set))), *_raw_nodes(cluster)]),
        **render_refusals(cluster),
        **health_checks.render(cluster),
        **gpu_jobs.render(cluster),
        **({"elastic": "".join(f"{node_set.name}\n" for node_set in elastic)} if (elastic := elastic_sets(cluster)) else {}),
        **cluster.slurm.files,
    }


def render_settings(cluster: Cluster) -> str:
    """slurm.conf without its nodes, partitions and raw lines: it stands alone, whatever these refer to."""
    user_settings = {known(key, (*DEFAULTS, *LISTS)) or key: value for key, value in cluster.slurm.settings.items()}
    added = {key: user_settings.pop(key).split(",") if key in user_settings else [] for key in LISTS}
    defaults = dict(DEFAULTS)
    if any(known(key, ("PropagateResourceLimits",)) for key in user_settings):
        del defaults["PropagateResourceLimitsExcept"]  # Slurm takes only one of the two keys
    if not cluster.accounting.enabled:
        del defaults["AccountingStoreFlags"]
    if (smtp := cluster.notifications.smtp) is not None:
        defaults |= {"MailProg": MAILER, "MailDomain": smtp.domain}
    defaults |= {key: value for key, value in health_checks.slurm_settings(cluster).items() if known(key, user_settings) is None}
    settings = {**defaults, **checks_partition(cluster).settings, **user_settings}
    elastic = elastic_sets(cluster)
    always_up = [hostlist(node_set, node_set.min or 0) if node_set.is_elastic else hostlist(node_set) for node_set in cluster.node_sets]
    always_up += _raw_nodes(cluster)
    types = {kind: None for node_set in cluster.node_sets if node_set.gpus for kind in node_set.gpus.types}
    text = template("slurm.conf.j2").render(
        cluster=cluster,
        slurm=cluster.slurm,
        ports=PORTS,
        # Slurm looks for nodes to wake every 10 s in a quiet cluster (measured: up to 11 s to POWERING_UP, and 2 s with this).
        parameters=_merged([*SLURMCTLD_PARAMETERS, *(["power_save_interval=1"] if elastic else [])], added["SlurmctldParameters"]),
        prolog_flags=_merged(["Contain"], added["PrologFlags"]),
        elastic=bool(elastic),
        scheduler_parameters=_scheduler_parameters(cluster),
        checks={context: health_checks.checks_in(cluster, context) for context in ("interval", "prolog", "epilog")},
        check_script=prologs.CHECKS,
        check_script_path=health_checks.SCRIPT_PATH,
        gpu_jobs_script=prologs.GPU_JOBS if gpu_jobs.render(cluster) else "",
        kept=[nodes for nodes in always_up if nodes],
        has_gpus=bool(types),
        tracked=_merged(["gres/gpu", *(f"gres/gpu:{kind}" for kind in types)] if types else [], added["AccountingStorageTRES"]),
    )
    # A value that equals the rendered one is accepted, and stands once.
    fixed = rendered_keys(text).keys() - {key.lower() for key in REPEATED}
    return text + "".join(f"{line}\n" for line in _lines({key: value for key, value in settings.items() if key.lower() not in fixed}))


def _lines(settings: Mapping[str, str]) -> list[str]:
    return [setting(key, settings[key]) for key in sorted(settings, key=str.lower)]


def _merged(ours: list[str], added: list[str]) -> list[str]:
    """Items of a list without repeats: Slipway's first."""
    ours_lower = {item.lower() for item in ours}
    return [*ours, *(item for item in added if item.lower() not in ours_lower)]


def _raw_lines(cluster: Cluster) -> list[str]:
    """The raw lines without those that repeat a rendered one: Slurm would report these as errors."""
    rendered = rendered_keys(render_settings(cluster))
    lines: list[str] = []
    for line in cluster.slurm.raw:
        pairs = pairs_of(line)
        if not pairs or len(pairs) > 1 or not is_same_value(pairs[0][0], pairs[0][1], rendered):
            lines.append(line)
    return lines


def _scheduler_parameters(cluster: Cluster) -> list[str]:
    """The user's, and nohold_on_prolog_fail: a job that its node could not start waits for another node instead of being held."""
    parameters = [*cluster.slurm.scheduler_parameters]
    return [*parameters, *([_NOHOLD] if _NOHOLD not in map(str.lower, parameters) else [])]


def render_refusals(cluster: Cluster) -> dict[str, str]:
    """The script of refusals, by file name. `slurm.settings` may replace the plugins that run it, which are defaults of slurm.conf.

    A MailProg of the user's ends the warning of --mail-type, and a TmpDisk the refusal of --tmp.
    """
    mailers = [value for key, value in cluster.slurm.settings.items() if known(key, ("MailProg",))]
    sends_mail = cluster.notifications.smtp is not None or any(mailer != NO_MAIL for mailer in mailers)
    text = template("refusals.lua.j2").render(
        sends_mail=sends_mail,
        has_disk=_declares_disk(cluster),
        has_accounting=cluster.accounting.enabled,
        receivers=sorted(receiver.name for receiver in cluster.notifications.receivers),
        volumes=volume_places(cluster),
    )
    return dict.fromkeys(REFUSALS, text)


def job_processes(cluster: Cluster) -> str:
    """The most processes of a job on a node, as images/slurm/root reads it: a base, and a number for each CPU. Empty for no limit."""
    base = cluster.slurm.processes_per_job
    return "" if base is None else f"{base}+{cluster.slurm.processes_per_cpu}"


def job_disks(node_set: NodeSet) -> str:
    """What jobs have of a node's disk, as programs/worker and images/slurm/root/disk.c read it; empty for nothing."""
    tmp, scratch = node_set.tmp, node_set.scratch
    kind = "tmp-in-memory" if tmp and tmp.medium == "Memory" else "tmp"
    return " ".join([*([f"{kind}={tmp.size_mib}"] if tmp else []), *([f"scratch={scratch.size_mib}"] if scratch else [])])


def private_data(cluster: Cluster) -> str:
    """The words of PrivateData in lower case, from settings or raw lines; empty without them."""
    lines = [*cluster.slurm.settings.items(), *((key, value) for key, _, value in (line.partition("=") for line in cluster.slurm.raw))]
    words = " ".join(str(value) for key, value in lines if key.strip().lower() == "privatedata").strip().lower()
    return "" if words == "none" else words


def render_slurmdbd(cluster: Cluster) -> str:
    """slurmdbd.conf without its password line."""
    accounting = cluster.accounting
    external = accounting.external
    records = [camel(name) for name in Purge.model_fields]
    purges = {record: age for record, name in zip(records, Purge.model_fields, strict=True) if (age := getattr(accounting.purge, name))}
    return template("slurmdbd.conf.j2").render(
        cluster=cluster,
        ports=PORTS,
        host=external.host if external else f"{cluster.name}-mariadb",
        port=external.port if external else ports.MARIADB,
        user=external.user if external else "slurm",
        database=external.database if external else "slurm_acct_db",
        ca=(CA_FILE if external.ca_secret else SYSTEM_CA_FILE) if external and external.tls else None,
        purges=[f"Purge{_PURGED[record]}After={age}" for record, age in purges.items()],
        archive=f"{ARCHIVE}/{cluster.name}" if accounting.archive else None,
        archived=[f"Archive{_ARCHIVED[kind]}={yes_no}" for kind, yes_no in _archived(accounting).items()],
    )


def _archived(accounting: Accounting) -> dict[str, str]:
    """What Slurm archives, each set explicitly: otherwise environments follow the jobs. Scripts always do (measured on 26.05)."""
    if accounting.archive is None:
        return {}
    return {record: "yes" if record in accounting.archive.records else "no" for record in _ARCHIVED}


def elastic_sets(cluster: Cluster) -> list[NodeSet]:
    """The node sets that follow the queue. prolog-slurmctld.sh reads their names from the file `elastic`."""
    return [node_set for node_set in cluster.node_sets if node_set.is_elastic]


def hostlist(node_set: NodeSet, count: int | None = None) -> str:
    """The nodes of a set, or its first `count`, as Slurm writes them: `gpu-[0-63]`, `gpu-0` for a single node, empty for none."""
    count = node_set.ordinals if count is None else count
    if count <= 1:
        return f"{node_set.name}-0" if count else ""
    return f"{node_set.name}-[0-{count - 1}]"


def _raw_nodes(cluster: Cluster) -> list[str]:
    first = [pairs[0] for line in cluster.slurm.raw if (pairs := pairs_of(line))]
    return [nodes for key, nodes in first if known(key, ("NodeName",)) and nodes and nodes.upper() != "DEFAULT"]


def node_line(cluster: Cluster, node_set: NodeSet) -> str:
    """The line of a node set. Raises KeyError for a pool that is not there."""
    shape = shape_of(cluster, node_set)
    pairs = {
        "NodeName": hostlist(node_set),
        "CPUs": shape.cpus,
        "Boards": 1,
        "SocketsPerBoard": shape.sockets,
        "CoresPerSocket": shape.cores_per_socket,
        "ThreadsPerCore": shape.threads_per_core,
        "RealMemory": shape.memory_mib,
        **({"Gres": ",".join(f"gpu:{kind}:{count}" for kind, count in shape.gpus.types.items())} if shape.gpus else {}),
        **({"Feature": ",".join(node_set.features)} if node_set.features else {}),
        **({} if any(key.lower() == "weight" for key in node_set.slurmd) else _weight(cluster, node_set)),
        **node_set.slurmd,
        "State": "CLOUD",
    }
    return _line(pairs)


def _weight(cluster: Cluster, node_set: NodeSet) -> dict[str, int]:
    """Slurm takes nodes of the lowest weight first (slurm.conf(5), Weight): nodes without GPUs (1), then those with the fewest and smallest
    GPUs."""
    if node_set.gpus is None:
        return {}
    return {"Weight": 1 + node_set.gpus.count * gpu_gib(cluster, node_set)}


def partition_line(cluster: Cluster, partition: Partition) -> str:
    """The line of a partition. Raises KeyError for an unknown node set."""
    sets = [node_set for name in partition.node_sets if (node_set := cluster.node_set(name)).ordinals]
    settings = {known(key, {"DefMemPerCPU", "DefMemPerNode", KEY}) or key: value for key, value in partition.settings.items()}
    has_nodes = any(node_set.ordinals for node_set in cluster.node_sets)
    pairs = {
        "PartitionName": partition.name,
        # Without a node the key is left out: an empty value would swallow the next key.
        **({"Nodes": ",".join(map(hostlist, sets))} if sets else {}),
        "Default": "YES" if partition.default else "NO",
        "MaxTime": partition.max_time,
        "DefaultTime": partition.default_time or partition.max_time,
        "State": partition.state,
        "PriorityTier": partition.priority_tier,
        **({"AllowAccounts": ",".join(partition.allow_accounts)} if partition.allow_accounts else {}),
        **({"AllowQos": ",".join(partition.allow_qos)} if partition.allow_qos else {}),
        **({"QOS": partition.qos} if partition.qos else {}),
        **({"Topology": partition.topology} if partition.topology and has_nodes else {}),
        **({} if "DefMemPerNode" in settings or not sets else {"DefMemPerCPU": _memory_per_cpu(cluster, sets)}),
        # Of a node's partitions the longest time counts, so the partitions of an elastic set may have none.
        **({} if any(node_set.is_elastic for node_set in sets) else {"SuspendTime": "INFINITE"}),
        **billing_weights(cluster, partition),
        **{key: value for key, value in checks_partition(cluster).users.items() if known(key, settings) is None},
        **settings,
    }
    return _line(pairs)


def checks_line(cluster: Cluster) -> str:
    """The line of the hidden partition of health checks; empty where there is none."""
    sets = checks_partition(cluster).node_sets
    stays_up = not any(node_set.is_elastic for node_set in sets)
    return _line(partition_keys(",".join(map(hostlist, sets)), stays_up)) if sets else ""


def gres_lines(cluster: Cluster, node_set: NodeSet, gpus: Gpus) -> list[str]:
    """The device files of a set's GPUs: one line for GPUs with the same cores, or one line for each MIG instance."""
    prefix, offset = _DEVICE_FILES[gpus.vendor]
    nodes = hostlist(node_set)
    lines: list[str] = []
    for first, count, cores in gpu_groups(shape_of(cluster, node_set)):
        near = {"Cores": cores} if cores else {}
        begin, end = offset + first, offset + first + count - 1
        if not gpus.mig:
            files = f"{prefix}{begin}" if count == 1 else f"{prefix}[{begin}-{end}]"
            lines.append(_line({"NodeName": nodes, "Name": "gpu", "Type": gpus.model, "File": files, **near}))
        for gpu in range(begin, end + 1) if gpus.mig else ():
            for at, profile in enumerate(instance.profile for instance in gpus.mig for _ in range(instance.count)):
                files = ",".join([f"{prefix}{gpu}", *device_files(gpu, at)])
                lines.append(_line({"NodeName": nodes, "Name": "gpu", "Type": f"{gpus.model}_{profile}", "MultipleFiles": files, **near}))
    return lines


def _memory_per_cpu(cluster: Cluster, sets: list[NodeSet]) -> int:
    """MiB per CPU for jobs that request no memory: without it they would get all of a node. Source: slurm.conf(5), DefMemPerCPU."""
    shares = [(shape_of(cluster, node_set).memory_mib - node_set.kept_memory_mib) // shape_of(cluster, node_set).cpus for node_set in sets]
    return cluster.slurm.default_memory_per_cpu_mib or max(1, min(shares))


def _line(pairs: Mapping[str, object]) -> str:
    return " ".join(setting(key, str(value)) for key, value in pairs.items())


def _declares_disk(cluster: Cluster) -> bool:
    """True if a node set or a raw line declares local disks: then Slurm can tell which nodes fit `--tmp`."""
    line_settings = [pair for node_set in cluster.node_sets for pair in node_set.slurmd.items()]
    line_settings += [pair for line in cluster.slurm.raw for pair in pairs_of(line) or ()]
    return any(known(key, ("TmpDisk",)) and value != "0" for key, value in line_settings)
