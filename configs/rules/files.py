"""Rules of further keys of cgroup.conf and of files beside slurm.conf: keys have the files they need, and files have a reader.

slurmctld waits a minute for a missing file, then does not start or refuses the reconfigure (26.05.5).
"""

from collections.abc import Mapping

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.slurm_keys import CGROUP_KEYS, OWN_CGROUP_KEYS
from configs.render.slurm import REFUSALS, render
from configs.rules.stated import Stated, stated
from slurm.conf import known

_NEEDED = {
    ("BurstBufferType", "burst_buffer/lua"): "burst_buffer.lua",
    ("JobCompType", "jobcomp/lua"): "jobcomp.lua",
    ("TopologyPlugin", "topology/tree"): "topology.conf",
    ("TopologyPlugin", "topology/block"): "topology.conf",
}
"""The file that slurmctld reads for a value, by key and value."""
ABSENT_PLUGINS: Mapping[str, str] = {
    "acct_gather_energy/ipmi": "AcctGatherEnergyType",
    "acct_gather_energy/xcc": "AcctGatherEnergyType",
    "acct_gather_profile/hdf5": "AcctGatherProfileType",
    "acct_gather_profile/influxdb": "AcctGatherProfileType",
    "jobcomp/elasticsearch": "JobCompType",
    "jobcomp/kafka": "JobCompType",
    "switch/hpe_slingshot": "SwitchType",
}
"""Slurm's plugins that Debian's packages, and so Slipway's image, leave out, with their keys."""
_SCRIPTS = ("Prolog", "Epilog")
_READ = frozenset(
    {"acct_gather.conf", "burst_buffer.conf", "helpers.conf", "jobcomp.lua", "mpi.conf", "oci.conf", "scrun.lua", "topology.conf"}
    | set(_NEEDED.values())
)
"""Files that Slurm reads by their name, once a key or an option calls for them."""
_MOST_BYTES = 524_288
"""Of all files together: they share one ConfigMap of 1 MiB with those that Slipway renders."""


def check_files(cluster: Cluster) -> list[Fault]:
    """Faults of `slurm.files` and `slurm.cgroupSettings`, and of keys whose files are missing."""
    files = cluster.slurm.files
    settings = stated(cluster)
    return [
        *_check_cgroup(cluster),
        *_check_plugins(settings, cluster),
        *_check_missing(settings, cluster),
        *_check_names(files, settings, cluster),
    ]


def _check_cgroup(cluster: Cluster) -> list[Fault]:
    faults: list[Fault] = []
    for key in cluster.slurm.cgroup_settings:
        path = f"cluster.slurm.cgroupSettings.{key}"
        if own_key := known(key, OWN_CGROUP_KEYS):
            faults.append(
                Fault(path, f"Slipway itself depends on {own_key}. It cannot be changed; slurm.cgroupVersion chooses the plugin.")
            )
        elif known(key, CGROUP_KEYS) is None:
            faults.append(Fault(path, f"Slurm knows no such key of cgroup.conf. {did_you_mean(key, CGROUP_KEYS, 'See cgroup.conf(5).')}"))
    return faults


def _check_plugins(settings: Mapping[str, Stated], cluster: Cluster) -> list[Fault]:
    """Checked for Slipway's image only: the user's own may have more plugins."""
    absent = [] if cluster.images.slurm else [(key, name) for name, key in ABSENT_PLUGINS.items() if key in settings]
    return [
        Fault(settings[key].path, f"Slipway's image has no plugin {name}. Name an image that has it in images.slurm.", ("cluster.images",))
        for key, name in absent
        if settings[key].value.lower() == name
    ]


def _check_missing(settings: Mapping[str, Stated], cluster: Cluster) -> list[Fault]:
    faults: list[Fault] = []
    for (key, value), name in _NEEDED.items():
        if key not in settings or settings[key].value.lower() != value or name in cluster.slurm.files:
            continue
        if key == "TopologyPlugin" and cluster.topologies:
            continue  # refused elsewhere: topologies have files of their own
        faults.append(Fault(settings[key].path, f"{value} needs {name}. Add its text to slurm.files.", ("cluster.slurm.files",)))
    for key in _SCRIPTS:
        script = settings[key].value if key in settings else "/"
        if "/" not in script and script not in cluster.slurm.files:
            message = f"{quoted(script)} has no path, so slurmctld sends it to the nodes. Add its text to slurm.files."
            faults.append(Fault(settings[key].path, message, ("cluster.slurm.files",)))
    return faults


def _check_names(files: Mapping[str, str], settings: Mapping[str, Stated], cluster: Cluster) -> list[Fault]:
    faults: list[Fault] = []
    scripts = {settings[key].value for key in _SCRIPTS if key in settings}
    base = cluster.model_copy(update={"slurm": cluster.slurm.model_copy(update={"files": {}})})
    ours = {*render(base), *REFUSALS, "slurmdbd.conf", "elastic"} if files else set[str]()
    for name, text in files.items():
        path = f"cluster.slurm.files[{quoted(name)}]"
        if name in ours or name.startswith("slipway-"):
            faults.append(Fault(path, "Slipway renders this file. Use the keys of the stack file instead."))
        elif name == "topology.conf" and cluster.topologies:
            faults.append(Fault(path, "Slurm would ignore it beside topologies. Keep one of the two."))
        elif name not in _READ and name not in scripts:
            message = f"Slurm does not read it. {did_you_mean(name, _READ)} Scripts need a key of slurm.settings that names them."
            faults.append(Fault(path, message, ("cluster.slurm.settings",)))
        elif name in scripts and not text.startswith("#!"):
            faults.append(Fault(path, "is run as a program, and does not begin with #! and an interpreter, such as #!/bin/sh."))
    if (size := sum(len(text.encode()) for text in files.values())) > _MOST_BYTES:
        faults.append(Fault("cluster.slurm.files", f"has {size} bytes; {_MOST_BYTES} are allowed for all files together."))
    return faults
