"""Every kind of rendered set, parsed by a real slurmctld with a real slurmdbd and MariaDB behind it. Needs root and the built image."""

# ruff: noqa: E501 - a table reads best with a row on a line

import re
from pathlib import Path
from typing import Any

import pytest

from configs.models.slurm_keys import GLOBAL_KEYS, NODE_KEYS, PARTITION_KEYS, rendered_keys
from configs.render.slurm import hostlist, render, render_slurmdbd
from slurm.conf import pairs_of
from tests.support.configs.stacks import EXAMPLES, GONE, cluster
from tests.support.slurm.render_lab import ELSEWHERE, Reading, read_sets

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dev": ("dev", {}),
    "h100": ("h100", {}),
    "dev-without-accounting": ("dev", {"accounting": {"enabled": False}}),
    "dev-without-gpus": ("dev", {"nodeSets[1].gpus": GONE, "nodeSets[1].simulatedGpus": False, "healthChecks[3]": GONE}),
    "dev-of-one-node": ("dev", {"nodeSets[0].size": 1, "nodeSets[1].size": 0}),
    "dev-of-no-node": ("dev", {"nodeSets[0].size": 0, "nodeSets[1].size": 0}),
    "dev-of-fixed-sets": ("dev", {"nodeSets[2]": GONE, "partitions[2]": GONE}),
    "dev-of-elastic-sets": ("dev", {"nodeSets[1]": GONE, "nodeSets[0]": GONE, "partitions[1]": GONE, "partitions[0]": GONE, "partitions[0].default": True, "healthChecks": []}),
    "dev-elastic": ("dev", {"nodeSets[0].size": GONE, "nodeSets[0].min": 1, "nodeSets[0].max": 2, "partitions[0].nodeSets": ["cpu", "gpu", "burst"]}),
    "dev-cgroup-v1": ("dev", {"slurm": {"cgroupVersion": "v1"}}),
    "dev-cgroup-v2": ("dev", {"slurm": {"cgroupVersion": "v2"}}),
    "dev-parts-of-a-machine": ("dev", {"nodeSets[0].cpus": 2, "nodeSets[0].size": 1, "nodeSets[1].size": 0, "nodeSets[0].memoryMiB": GONE}),
    "dev-typed": (
        "dev",
        {
            "slurm": {
                "schedulerParameters": ["bf_window=4320", "bf_continue"],
                "selectTypeParameters": "CR_CPU_Memory",
                "priorityWeights": {"age": 1, "fairshare": 2, "jobSize": 3, "partition": 4, "qos": 5},
                "jobRequeue": False,
                "maxJobCount": 70_000,
                "maxArraySize": 5_000,
                "killWaitS": 60,
                "messageTimeoutS": 20,
                "slurmctldTimeoutS": 100,
                "slurmdTimeoutS": 200,
                "suspendTimeS": 210,
                "suspendTimeoutS": 220,
                "resumeTimeoutS": 230,
                "returnToService": 1,
                "defaultMemoryPerCpuMiB": 123,
            }
        },
    ),
    "dev-accounts": (
        "dev",
        {
            "accounting": {"enforce": ["associations", "limits", "qos", "safe"], "accounts": [{"name": "ml"}]},
            "partitions[0].allowAccounts": ["root"],
            "partitions[0].allowQos": ["normal"],
        },
    ),
    "dev-settings": (
        "dev",
        {
            "slurm": {"settings": {"MinJobAge": 301, "inactivelimit": 901, "DisableRootJobs": True, "PriorityDecayHalfLife": "3-0", "MailDomain": "a b"}},
            "partitions[0].settings": {"OverSubscribe": "FORCE:2", "MaxNodes": 1, "DefMemPerNode": 77},
            "nodeSets[0].slurmd": {"MemSpecLimit": 100, "Weight": 9},
        },
    ),
    "dev-raw": (
        "dev",
        {"slurm": {"raw": ["# ours", 'NodeName=old-[1-3] NodeAddr=198.18.255.[11-13] CPUs=4 State=DOWN Reason="in repair"', "PartitionName=old Nodes=old-[1-3]", "TrackWCKey=yes"]}},
    ),
    "dev-times": ("dev", {"partitions[0].maxTime": "90", "partitions[0].defaultTime": "1:30", "partitions[1].maxTime": "UNLIMITED", "partitions[1].defaultTime": "2-12"}),
    "dev-amd": (
        "dev",
        {
            "nodePools[0].hardware.gpus": {"vendor": "amd", "model": "mi300x", "count": 8},
            "nodeSets[1].gpus": {"vendor": "amd", "model": "mi300x", "count": 8},
        },
    ),
    "dev-gpus-beside-two-sockets": ("dev", {"nodePools[0].hardware.sockets": 2, "nodePools[0].hardware.coresPerSocket": 1, "nodePools[0].max": 9, "nodeSets[1].cpus": GONE, "nodeSets[1].gpus.sockets": [1, 0, 0, 1]}),
    "dev-gpus-beside-nobody-knows": ("dev", {"nodePools[0].hardware.sockets": 3, "nodePools[0].max": 9, "nodeSets[1].cpus": GONE}),
    "dev-cores-kept-for-gpus": ("dev", {"nodePools[0].hardware.coresPerSocket": 4, "nodePools[0].max": 9, "nodeSets[1].cpus": 4, "nodeSets[1].slurmd": {"RestrictedCoresPerGPU": 1}}),
    "h100-cores-kept-for-gpus": ("h100", {"nodeSets[0].slurmd": {"RestrictedCoresPerGPU": 12}}),
    "h100-ten-thousand": ("h100", {"nodePools[0].max": 10_000, "nodeSets[0].size": 10_000}),
    "h100-ten-thousand-elastic": ("h100", {"nodePools[0].max": 10_000, "nodeSets[0].size": GONE, "nodeSets[0].min": 64, "nodeSets[0].max": 10_000}),
}  # fmt: skip


def files_of(variant: str) -> dict[str, str]:
    """A variant's rendered files."""
    loaded = cluster(*VARIANTS[variant])
    return {**render(loaded), "slurmdbd.conf": render_slurmdbd(loaded)}


def keys_conf(base: str) -> str:
    """A slurm.conf with every key that we take for known, and one of each kind that no one knows."""
    plain = "".join(f"{key}=1\n" for key in sorted({*GLOBAL_KEYS, "NoSuchGlobal"}) if key not in rendered_keys(base))
    skipped = {"NodeName", "PartitionName"}
    node = "".join(f"NodeName=n{at} {key}=1\n" for at, key in enumerate(sorted({*NODE_KEYS, "NoSuchNode"} - skipped)))
    partition = "".join(f"PartitionName=p{at} {key}=1\n" for at, key in enumerate(sorted({*PARTITION_KEYS, "NoSuchPartition"} - skipped)))
    return base + plain + node + partition


@pytest.fixture(scope="module")
def readings(image_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reading]:
    """What slurmctld made of every variant; one run for the variants of one cluster name."""
    readings: dict[str, Reading] = {}
    for name in EXAMPLES:
        sets = {variant: files_of(variant) for variant, (example, _) in VARIANTS.items() if example == name}
        if name == "dev":
            sets["keys"] = {**sets["dev"], "slurm.conf": keys_conf(sets["dev"]["slurm.conf"])}
        readings |= read_sets(image_root, tmp_path_factory.mktemp(f"render-{name}"), name, sets)
    return readings


@pytest.mark.parametrize("variant", VARIANTS)
def test_slurmctld_starts_without_a_complaint_and_ends_well(readings: dict[str, Reading], variant: str) -> None:
    reading = readings[variant]
    assert [line for line in reading.complaints if not ELSEWHERE.match(line)] == []
    assert reading.text("exit").strip() == "0", reading.text("log")[-3000:]
    assert reading.text("scontrol").replace("No nodes in the system", "").strip() == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_slurmctld_answers_on_its_http_endpoints(readings: dict[str, Reading], variant: str) -> None:
    assert {page: readings[variant].text(page).splitlines()[-1] for page in ("livez", "readyz", "metrics")} == {
        "livez": "204",
        "readyz": "204",
        "metrics": "200",
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_rendered_node_is_a_powered_down_cloud_node_of_its_shape(readings: dict[str, Reading], variant: str) -> None:
    nodes = readings[variant].records("nodes")
    files = files_of(variant)
    gres = files["gres.conf"].splitlines()
    for line in files["slurm.conf"].splitlines():
        if not line.startswith("NodeName=") or " State=CLOUD" not in line:
            continue
        said = dict(pairs_of(line) or [])
        first = re.sub(r"\[(\d+)-\d+\]", r"\1", said["NodeName"])
        node = nodes[first]
        assert node["State"] == "IDLE+CLOUD+POWERED_DOWN"
        assert (node["CPUTot"], node["Sockets"], node["CoresPerSocket"], node["ThreadsPerCore"]) == (
            said["CPUs"],
            said["SocketsPerBoard"],
            said["CoresPerSocket"],
            said["ThreadsPerCore"],
        )
        assert node["RealMemory"] == said["RealMemory"]
        # slurmctld says beside which sockets the GPUs are, as far as gres.conf tells it.
        has_cores = any(each.startswith(f"NodeName={said['NodeName']} ") and " Cores=" in each for each in gres)
        sockets = "0" if said["SocketsPerBoard"] == "1" else f"0-{int(said['SocketsPerBoard']) - 1}"
        assert node["Gres"] == said.get("Gres", "(null)") + (f"(S:{sockets})" if has_cores else "")
        assert node["AvailableFeatures"] == said.get("Feature", "(null)")


@pytest.mark.parametrize("variant", VARIANTS)
def test_number_of_nodes_and_partitions_is_what_the_config_says(readings: dict[str, Reading], variant: str) -> None:
    loaded = cluster(*VARIANTS[variant])
    raw = 3 if variant == "dev-raw" else 0
    assert len(readings[variant].records("nodes")) == sum(node_set.ordinals for node_set in loaded.node_sets) + raw
    partitions = readings[variant].records("partitions")
    for partition in loaded.partitions:
        found = partitions[partition.name]
        nodes = ",".join(hostlist(loaded.node_set(name)) for name in partition.node_sets if loaded.node_set(name).ordinals)
        assert sorted(found["Nodes"].replace("(null)", "").split(",")) == sorted(nodes.split(","))
        assert found["Default"] == ("YES" if partition.default else "NO")


def test_controller_is_configless_with_munge_and_jwt_and_accounts(readings: dict[str, Reading]) -> None:
    config = readings["dev"].config
    assert config["ClusterName"] == "dev"
    assert config["SlurmctldHost[0]"] == "dev-slurmctld-0(dev-slurmctld)"
    assert "enable_configless" in config["SlurmctldParameters"]
    assert (config["AuthType"], config["AuthAltTypes"]) == ("auth/munge", "auth/jwt")
    assert config["AccountingStorageType"] == "accounting_storage/slurmdbd"
    assert "gres/gpu:h100" in config["AccountingStorageTRES"]
    assert config["SelectType"] == "select/cons_tres"


def test_scripts_are_kept_where_there_is_accounting(readings: dict[str, Reading]) -> None:
    assert readings["dev"].config["AccountingStoreFlags"] == "job_comment,job_script"
    assert readings["dev-without-accounting"].config["AccountingStoreFlags"] == "(null)"


def test_nodes_without_gpus_have_the_lower_weight(readings: dict[str, Reading]) -> None:
    nodes = readings["dev"].records("nodes")
    assert int(nodes["cpu-0"]["Weight"]) < int(nodes["gpu-0"]["Weight"])


def test_enforcement_and_who_may_use_a_partition_arrive(readings: dict[str, Reading]) -> None:
    assert readings["dev-without-accounting"].config["AccountingStorageEnforce"] == "none"
    assert readings["dev"].config["AccountingStorageEnforce"] == "associations"
    assert readings["dev-accounts"].config["AccountingStorageEnforce"] == "associations,limits,qos,safe"
    main = readings["dev-accounts"].records("partitions")["main"]
    assert (main["AllowAccounts"], main["AllowQos"]) == ("root", "normal")


def test_typed_keys_arrive(readings: dict[str, Reading]) -> None:
    config = readings["dev-typed"].config
    expected = {
        "SchedulerParameters": "bf_window=4320,bf_continue,nohold_on_prolog_fail",
        "SelectTypeParameters": "CR_CPU_MEMORY",
        "PriorityWeightAge": "1",
        "PriorityWeightFairShare": "2",
        "PriorityWeightJobSize": "3",
        "PriorityWeightPartition": "4",
        "PriorityWeightQOS": "5",
        "JobRequeue": "0",
        "MaxJobCount": "70000",
        "MaxArraySize": "5000",
        "KillWait": "60 sec",
        "MessageTimeout": "20 sec",
        "SlurmctldTimeout": "100 sec",
        "SlurmdTimeout": "200 sec",
        "SuspendTime": "210 sec",
        "SuspendTimeout": "220 sec",
        "ResumeTimeout": "230 sec",
        "ReturnToService": "1",
    }
    assert {key: config[key] for key in expected} == expected
    assert readings["dev-typed"].records("partitions")["main"]["DefMemPerCPU"] == "123"


def test_power_saving_knows_who_stays(readings: dict[str, Reading]) -> None:
    keys = ("SuspendTime", "SuspendExcNodes", "SuspendRate", "ResumeRate", "ResumeProgram", "SuspendProgram", "PrologSlurmctld[0]")
    elastic = readings["dev-elastic"].config
    assert {key: elastic[key] for key in keys} == {
        "SuspendTime": "30 sec",
        "SuspendExcNodes": "cpu-0,gpu-[0-1]",
        "SuspendRate": "0 nodes/min",
        "ResumeRate": "0 nodes/min",
        "ResumeProgram": "/bin/true",
        "SuspendProgram": "/bin/true",
        "PrologSlurmctld[0]": "/opt/slipway/scripts/prolog-slurmctld.sh",
    }
    assert "power_save_interval=1" in elastic["SlurmctldParameters"]
    times = {name: found["SuspendTime"] for name, found in readings["dev-elastic"].records("partitions").items()}
    assert times == {"main": "GLOBAL", "gpu": "INFINITE", "burst": "GLOBAL", "slipway-checks": "GLOBAL"}
    assert readings["dev-of-fixed-sets"].config["SuspendTime"] == "INFINITE"


def test_settings_arrive(readings: dict[str, Reading]) -> None:
    config = readings["dev-settings"].config
    assert (config["MinJobAge"], config["InactiveLimit"], config["PriorityDecayHalfLife"]) == ("301 sec", "901 sec", "3-00:00:00")
    assert (config["DisableRootJobs"], config["MailDomain"]) == ("yes", "a b")
    main = readings["dev-settings"].records("partitions")["main"]
    assert (main["OverSubscribe"], main["MaxNodes"], main["DefMemPerNode"]) == ("FORCE:2", "1", "77")
    node = readings["dev-settings"].records("nodes")["cpu-0"]
    assert (node["MemSpecLimit"], node["Weight"]) == ("100", "9")


def test_raw_lines_arrive(readings: dict[str, Reading]) -> None:
    assert readings["dev-raw"].config["TrackWCKey"] == "yes"
    assert readings["dev-raw"].records("partitions")["old"]["Nodes"] == "old-[1-3]"
    assert readings["dev-raw"].records("nodes")["old-1"]["State"].startswith("DOWN")


def test_times_mean_what_we_take_them_for(readings: dict[str, Reading]) -> None:
    partitions = readings["dev-times"].records("partitions")
    assert (partitions["main"]["MaxTime"], partitions["main"]["DefaultTime"]) == ("01:30:00", "00:02:00")  # Slurm rounds up to minutes
    assert (partitions["gpu"]["MaxTime"], partitions["gpu"]["DefaultTime"]) == ("UNLIMITED", "2-12:00:00")


def test_every_key_that_we_know_is_one_that_slurm_knows(readings: dict[str, Reading]) -> None:
    unknown = set(re.findall(r"unrecognized key: (\w+)", readings["keys"].text("log")))
    assert unknown == {"NoSuchGlobal", "NoSuchNode", "NoSuchPartition"}
