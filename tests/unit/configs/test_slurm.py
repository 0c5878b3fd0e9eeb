"""Rendering Slurm's files: golden for both examples, the same length at any size, and each rule of a line."""

from typing import Any

import jinja2
import pytest

from configs.models.node_set import MAX_NODES
from configs.models.slurm_keys import GLOBAL_KEYS, LINE_KEYS, NODE_KEYS, OWN_NODE_KEYS, OWN_PARTITION_KEYS, PARTITION_KEYS, rendered_keys
from configs.render.billing import billing_weights
from configs.render.slurm import DEFAULTS, hostlist, job_processes, node_line, render, render_settings, render_slurmdbd
from slurm.conf import pairs_of
from tests.support.configs.golden import assert_golden, slurm_files
from tests.support.configs.stacks import EXAMPLES, GONE, cluster


def line_of(text: str, start: str) -> dict[str, str]:
    """The pairs of the one line that starts so."""
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return dict(pairs_of(line) or [])


def conf(edits: dict[str, Any], name: str = "dev") -> str:
    return render(cluster(name, edits))["slurm.conf"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_rendered_files_are_the_golden_ones(name: str) -> None:
    assert_golden(f"slurm/{name}", slurm_files(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_rendering_twice_gives_the_same_bytes(name: str) -> None:
    assert render(cluster(name)) == render(cluster(name))


def test_ten_thousand_nodes_take_as_many_lines_as_ten() -> None:
    def lines(size: int) -> list[int]:
        rendered = render(cluster("h100", {"nodePools[0].max": 10_000, "nodeSets[0].size": size}))
        return [text.count("\n") for text in rendered.values()]

    assert lines(10) == lines(10_000)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(0, "", id="none"),
        pytest.param(1, "cpu-0", id="one"),
        pytest.param(2, "cpu-[0-1]", id="two"),
        pytest.param(4, "cpu-[0-3]", id="four"),
    ],
)
def test_hostlist(size: int, expected: str) -> None:
    loaded = cluster("dev", {"nodeSets[0].size": size, "nodeSets[1].size": 0})
    assert hostlist(loaded.node_sets[0]) == expected
    assert hostlist(loaded.node_sets[2], size) == expected.replace("cpu", "burst")


def test_empty_set_has_no_line_and_leaves_its_partition_without_the_key() -> None:
    text = conf({"nodeSets[1].size": 0})
    assert "NodeName=gpu" not in text
    assert "Nodes" not in line_of(text, "PartitionName=gpu ")
    assert line_of(text, "PartitionName=main ")["Nodes"] == "cpu-[0-1]"
    assert "gpu" not in render(cluster("dev", {"nodeSets[1].size": 0}))["gres.conf"].replace("GPU", "")


def test_whole_machine_has_its_topology_and_a_part_of_it_one_socket() -> None:
    whole = line_of(conf({}, "h100"), "NodeName=h100-")
    assert [whole[key] for key in ("CPUs", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")] == ["192", "2", "48", "2"]
    part = line_of(conf({"nodeSets[1].cpus": 8}, "h100"), "NodeName=cpu-")
    assert [part[key] for key in ("CPUs", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")] == ["8", "1", "4", "2"]
    odd = line_of(conf({"nodeSets[1].cpus": 3}, "h100"), "NodeName=cpu-")
    assert [odd[key] for key in ("CPUs", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")] == ["3", "1", "3", "1"]


def test_memory_is_the_machines_less_five_percent_shared_out_by_cpus() -> None:
    assert line_of(conf({}, "h100"), "NodeName=cpu-")["RealMemory"] == str(262_144 - 13_107)
    assert line_of(conf({"nodeSets[1].cpus": 32}, "h100"), "NodeName=cpu-")["RealMemory"] == str((262_144 - 13_107) // 2)
    assert line_of(conf({"nodeSets[0].memoryMiB": GONE}), "NodeName=cpu-")["RealMemory"] == str((20_000 - 1_024) * 2 // 8)


FIXED = {"nodeSets[2]": GONE, "partitions[2]": GONE}


def test_every_node_is_a_cloud_node() -> None:
    assert all(line.endswith(" State=CLOUD") for line in conf({}).splitlines() if line.startswith("NodeName="))


def test_without_an_elastic_set_nothing_is_put_off_and_no_program_runs() -> None:
    text = conf(FIXED)
    assert rendered_keys(text)["suspendtime"] == "INFINITE"
    assert all(" SuspendTime=INFINITE" in line for line in text.splitlines() if line.startswith("PartitionName="))
    assert not {"suspendexcnodes", "prologslurmctld", "suspendrate", "resumerate"} & set(rendered_keys(text))
    assert "power_save_interval" not in text
    assert "elastic" not in render(cluster("dev", FIXED))


def test_fixed_and_first_elastic_nodes_are_never_powered_down() -> None:
    keys = rendered_keys(conf({"nodeSets[2].min": 1, "slurm": {"suspendTimeS": 60, "suspendTimeoutS": 61, "resumeTimeoutS": 62}}))
    assert (keys["suspendtime"], keys["suspendtimeout"], keys["resumetimeout"]) == ("60", "61", "62")
    assert keys["suspendexcnodes"] == "cpu-[0-1],gpu-[0-1],burst-0"
    assert (keys["resumerate"], keys["suspendrate"]) == ("0", "0")
    assert keys["slurmctldparameters"] == "enable_configless,reconfig_on_restart,power_save_interval=1"
    assert keys["prologslurmctld"] == "/opt/slipway/scripts/prolog-slurmctld.sh"


def test_nodes_of_raw_lines_are_never_put_off() -> None:
    raw = ["NodeName=DEFAULT CPUs=4", "nodename=old-[1-3] State=DOWN", "PartitionName=old Nodes=old-[1-3]"]
    assert rendered_keys(conf({"slurm": {"raw": raw}}))["suspendexcnodes"] == "cpu-[0-1],gpu-[0-1],old-[1-3]"


def test_elastic_sets_are_named_in_a_file_of_their_own() -> None:
    """So that a further set changes a line of the ConfigMap and no pod."""
    edits = {"nodeSets[0].size": GONE, "nodeSets[0].min": 1, "nodeSets[0].max": 2}
    assert render(cluster("dev", edits))["elastic"] == "cpu\nburst\n"


def test_partition_of_an_elastic_set_leaves_the_time_to_the_cluster() -> None:
    """Slurm takes the longest time of a node's partitions."""
    text = conf({"partitions[0].nodeSets[+]": "burst"})
    found = {name: "SuspendTime" in line_of(text, f"PartitionName={name} ") for name in ("main", "gpu", "burst")}
    assert found == {"main": False, "gpu": True, "burst": False}


def test_cluster_of_elastic_sets_alone_keeps_no_node() -> None:
    gone: dict[str, Any] = {"nodeSets[1]": GONE, "nodeSets[0]": GONE, "partitions[1]": GONE, "partitions[0]": GONE, "healthChecks": []}
    assert "SuspendExcNodes" not in conf({**gone, "partitions[0].default": True})


def test_longest_host_name_is_one() -> None:
    name = "n" * 30
    loaded = cluster("dev", {"nodeSets[0].name": name, "partitions[0].nodeSets[0]": name, "healthChecks": []})
    assert loaded.node_sets[0].name == name
    assert len(f"{name}-{MAX_NODES - 1}") <= 63


def test_job_without_a_memory_request_can_use_all_cpus_of_a_small_node() -> None:
    text = conf({"nodeSets[0].slurmd": {"memspeclimit": 500}})
    assert line_of(text, "PartitionName=main ")["DefMemPerCPU"] == "774"
    assert line_of(text, "PartitionName=gpu ")["DefMemPerCPU"] == "1024"
    own = conf({"slurm": {"defaultMemoryPerCpuMiB": 100}})
    assert line_of(own, "PartitionName=gpu ")["DefMemPerCPU"] == "100"


@pytest.mark.parametrize("key", ["DefMemPerNode", "defmempernode"])
def test_memory_a_node_takes_the_place_of_memory_a_cpu(key: str) -> None:
    line = line_of(conf({"partitions[0].settings": {key: 5}}), "PartitionName=main ")
    assert "DefMemPerCPU" not in line
    assert line["DefMemPerNode"] == "5"


def test_own_memory_default_of_a_partition_stands_once() -> None:
    text = conf({"partitions[0].settings": {"defmempercpu": 5}})
    (line,) = [line for line in text.splitlines() if line.startswith("PartitionName=main ")]
    assert line.lower().count("defmempercpu") == 1
    assert "DefMemPerCPU=5" in line


def test_setting_replaces_a_default_whatever_its_case() -> None:
    text = conf({"slurm": {"settings": {"inactivelimit": 900}}})
    assert "InactiveLimit=900" in text
    assert text.lower().count("inactivelimit=") == 1


def test_setting_with_spaces_is_quoted() -> None:
    assert 'MailDomain="a b"' in conf({"slurm": {"settings": {"MailDomain": "a b"}}})


def test_truth_and_numbers_read_as_slurm_writes_them() -> None:
    text = conf({"slurm": {"settings": {"DisableRootJobs": True, "TrackWCKey": False, "MinJobAge": 300, "PriorityDecayHalfLife": "7-0"}}})
    assert {"DisableRootJobs=yes", "TrackWCKey=no", "MinJobAge=300", "PriorityDecayHalfLife=7-0"} <= set(text.splitlines())


def test_raw_lines_are_last_and_as_they_were_written() -> None:
    lines = ["# ours", 'NodeName=old-[1-3] CPUs=4 State=DOWN Reason="in repair"', "PartitionName=old Nodes=old-[1-3]"]
    assert conf({"slurm": {"raw": lines}}).endswith("\n".join(["# Raw lines of slurm.raw.", *lines, ""]))


def test_without_accounting_nothing_names_it() -> None:
    assert "AccountingStorage" not in conf({"accounting": {"enabled": False}})


def test_without_gpus_nothing_names_them() -> None:
    edits = {"nodeSets[1].gpus": GONE, "nodeSets[1].simulatedGpus": False, "healthChecks[3]": GONE}
    rendered = render(cluster("dev", edits))
    assert "gres" not in rendered["slurm.conf"].lower()
    assert "Name=" not in rendered["gres.conf"]


@pytest.mark.parametrize(
    ("version", "plugin"),
    [pytest.param("auto", "autodetect", id="auto"), pytest.param("v1", "cgroup/v1", id="v1"), pytest.param("v2", "cgroup/v2", id="v2")],
)
def test_cgroup_plugin_follows_the_version(version: str, plugin: str) -> None:
    assert f"\nCgroupPlugin={plugin}\n" in render(cluster("dev", {"slurm": {"cgroupVersion": version}}))["cgroup.conf"]


@pytest.mark.parametrize(
    ("vendor", "count", "files"),
    [
        pytest.param("nvidia", 1, "/dev/nvidia0", id="one-nvidia"),
        pytest.param("nvidia", 8, "/dev/nvidia[0-7]", id="eight-nvidia"),
        pytest.param("amd", 1, "/dev/dri/renderD128", id="one-amd"),
        pytest.param("amd", 8, "/dev/dri/renderD[128-135]", id="eight-amd"),
    ],
)
def test_gres_lists_the_device_files(vendor: str, count: int, files: str) -> None:
    gpus = {"vendor": vendor, "model": "m", "count": count}
    rendered = render(cluster("dev", {"nodePools[0].hardware.gpus": gpus, "nodeSets[1].gpus": gpus}))
    line = line_of(rendered["gres.conf"], "NodeName=")
    assert line == {"NodeName": "gpu-[0-1]", "Name": "gpu", "Type": "m", "File": files, "Cores": line["Cores"]}
    assert line_of(rendered["slurm.conf"], "NodeName=gpu-")["Gres"] == f"gpu:m:{count}"


@pytest.mark.parametrize(
    ("sockets", "cores", "given", "near"),
    [
        pytest.param(2, 24, [], {"/dev/nvidia[0-1]": "0-23", "/dev/nvidia[2-3]": "24-47"}, id="evenly-over-sockets"),
        pytest.param(4, 1, [], {f"/dev/nvidia{at}": str(at) for at in range(4)}, id="one-each"),
        pytest.param(3, 8, [], {"/dev/nvidia[0-3]": None}, id="not-to-be-spread-evenly"),
        pytest.param(1, 8, [], {"/dev/nvidia[0-3]": "0-7"}, id="one-socket"),
        pytest.param(2, 4, [1, 0, 0, 1], {"/dev/nvidia0": "4-7", "/dev/nvidia[1-2]": "0-3", "/dev/nvidia3": "4-7"}, id="as-given"),
    ],
)
def test_gres_tells_the_cores_beside_each_gpu(sockets: int, cores: int, given: list[int], near: dict[str, str | None]) -> None:
    hardware = {"sockets": sockets, "coresPerSocket": cores, "gpus": {"model": "m", "count": 4}, "memoryMiB": 64_000}
    gpus = {"model": "m", "count": 4, "sockets": given}
    edits = {"nodePools[0].hardware": hardware, "nodePools[0].max": 9, "nodeSets[1].gpus": gpus, "nodeSets[1].cpus": GONE}
    rendered = render(cluster("dev", edits))
    lines = [dict(pairs_of(line) or ()) for line in rendered["gres.conf"].splitlines() if line.startswith("NodeName=")]
    assert {line["File"]: line.get("Cores") for line in lines} == near


def test_gres_has_a_line_for_each_instance_of_mig() -> None:
    """On four GPUs of two sockets: an instance of three slices, then two of one."""
    hardware = {"sockets": 2, "coresPerSocket": 4, "gpus": {"model": "m", "count": 4}, "memoryMiB": 64_000}
    mig = [{"profile": "3g.40gb", "count": 1}, {"profile": "1g.10gb", "count": 2}]
    gpus = {"model": "m", "count": 4, "mig": mig}
    edits = {"nodePools[0].hardware": hardware, "nodePools[0].max": 9, "nodeSets[1].gpus": gpus, "nodeSets[1].cpus": GONE}
    rendered = render(cluster("dev", edits))
    lines = [dict(pairs_of(line) or ()) for line in rendered["gres.conf"].splitlines() if line.startswith("NodeName=")]
    assert [(line["Type"], line["Cores"]) for line in lines[:3]] == [("m_3g.40gb", "0-3"), ("m_1g.10gb", "0-3"), ("m_1g.10gb", "0-3")]
    assert [line["MultipleFiles"] for line in lines[-2:]] == [
        "/dev/nvidia3,/dev/slipway-mig/3-1-gi,/dev/slipway-mig/3-1-ci",
        "/dev/nvidia3,/dev/slipway-mig/3-2-gi,/dev/slipway-mig/3-2-ci",
    ]
    assert (len(lines), {line["Cores"] for line in lines[-6:]}) == (12, {"4-7"})
    assert line_of(rendered["slurm.conf"], "NodeName=gpu-")["Gres"] == "gpu:m_3g.40gb:4,gpu:m_1g.10gb:8"
    [tracked] = line_of(rendered["slurm.conf"], "AccountingStorageTRES").values()
    assert tracked == "gres/gpu,gres/gpu:m_3g.40gb,gres/gpu:m_1g.10gb"


def test_every_rendered_key_is_one_that_slurm_knows() -> None:
    for name in EXAMPLES:
        assert {key.lower() for key in GLOBAL_KEYS} >= set(rendered_keys(render_settings(cluster(name))))
    assert set(DEFAULTS) <= GLOBAL_KEYS
    assert OWN_NODE_KEYS <= NODE_KEYS
    assert OWN_PARTITION_KEYS <= PARTITION_KEYS
    assert not LINE_KEYS & GLOBAL_KEYS


def test_password_is_never_rendered() -> None:
    assert "StoragePass=" not in render_slurmdbd(cluster("dev"))


def test_template_that_misses_a_value_fails() -> None:
    from configs.render.wording import template

    with pytest.raises(jinja2.UndefinedError):
        template("slurm.conf.j2").render()


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        pytest.param("A=1", [("A", "1")], id="one"),
        pytest.param(" A = 1  B=2 ", [("A", "1"), ("B", "2")], id="two-with-spaces"),
        pytest.param('A="x y" B=2', [("A", "x y"), ("B", "2")], id="quoted"),
        pytest.param("A=1 # B=2", [("A", "1")], id="comment-after"),
        pytest.param("# A=1", [], id="comment"),
        pytest.param("", [], id="blank"),
        pytest.param("A", None, id="no-value"),
        pytest.param("A=", None, id="empty-value"),
        pytest.param("A=1 B", None, id="word-after"),
        pytest.param('A="x', [("A", '"x')], id="open-quote-is-part-of-the-value"),
    ],
)
def test_pairs_of_a_line(line: str, pairs: list[tuple[str, str]] | None) -> None:
    assert pairs_of(line) == pairs


def test_login_limits_do_not_reach_jobs_unless_the_user_says_so() -> None:
    assert "PropagateResourceLimitsExcept=AS,MEMLOCK,NPROC" in render_settings(cluster("dev")).splitlines()
    own = render_settings(cluster("dev", {"slurm.settings": {"PropagateResourceLimits": "NONE"}})).splitlines()
    assert [line for line in own if line.startswith("Propagate")] == ["PropagateResourceLimits=NONE"]


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param({}, "512+256", id="default"),
        pytest.param({"slurm.processesPerJob": 2000, "slurm.processesPerCpu": 0}, "2000+0", id="own"),
        pytest.param({"slurm.processesPerJob": None}, "", id="none"),
    ],
)
def test_processes_of_a_job_are_limited_unless_the_config_says_none(edits: dict[str, Any], expected: str) -> None:
    assert job_processes(cluster("dev", edits)) == expected


def test_gpu_nodes_are_allocated_last_unless_the_user_sets_a_weight() -> None:
    def weights(edits: dict[str, Any]) -> list[str | None]:
        loaded = cluster("dev", edits)
        pairs = [dict(pairs_of(node_line(loaded, node_set)) or []) for node_set in loaded.node_sets]
        return [each.get("Weight") for each in pairs]

    assert weights({}) == [None, str(1 + 4 * 80), None]
    assert weights({"nodeSets[1].slurmd": {"weight": 7}})[1] is None  # it stands there in the user's own spelling
    assert weights({"nodeSets[0].slurmd": {"Weight": 9}})[0] == "9"


def test_job_scripts_are_kept_unless_accounting_or_the_user_says_no() -> None:
    def line(edits: dict[str, Any]) -> list[str]:
        return [each for each in render_settings(cluster("dev", edits)).splitlines() if each.startswith("AccountingStoreFlags")]

    assert line({}) == ["AccountingStoreFlags=job_comment,job_script"]
    assert line({"slurm.settings": {"AccountingStoreFlags": "job_comment"}}) == ["AccountingStoreFlags=job_comment"]
    assert line({"accounting": {"enabled": False}}) == []


MIG = {"nodeSets[0].gpus.mig": [{"profile": "1g.10gb", "count": 7}], "healthChecks[5]": GONE}


@pytest.mark.parametrize(
    ("name", "edits", "weights"),
    [
        pytest.param("h100", {}, "CPU=1,GRES/gpu=80", id="memory-of-the-gpus"),
        pytest.param("h100", MIG, "CPU=1,GRES/gpu=10", id="memory-of-instances"),
        pytest.param("h100", {"partitions[0].settings": {"tresbillingweights": "CPU=2"}}, "CPU=2", id="weights-of-the-stack-file"),
        pytest.param("h100", {"accounting": {"enabled": False}}, None, id="nothing-counts-without-accounting"),
    ],
)
def test_gpus_have_a_price_in_fair_share(name: str, edits: dict[str, Any], weights: str | None) -> None:
    conf = render(cluster(name, edits))["slurm.conf"]
    pairs = {key.lower(): value for key, value in line_of(conf, "PartitionName=train ").items()}
    assert pairs.get("tresbillingweights") == weights


def test_price_of_two_models_in_one_partition_is_by_type() -> None:
    loaded = cluster("dev", {})
    [gpu] = [each for each in loaded.node_sets if each.name == "gpu"]
    assert gpu.gpus is not None
    pool = loaded.node_pools[0]
    assert pool.hardware is not None
    assert pool.hardware.gpus is not None
    small = pool.hardware.gpus.model_copy(update={"model": "l4", "memory_mib": 23034})
    other = pool.model_copy(update={"name": "small", "hardware": pool.hardware.model_copy(update={"gpus": small})})
    small_set = gpu.model_copy(update={"name": "inference", "pool": "small", "gpus": gpu.gpus.model_copy(update={"model": "l4"})})
    mixed = loaded.model_copy(update={"node_sets": (*loaded.node_sets, small_set), "node_pools": (*loaded.node_pools, other)})
    partition = loaded.partitions[1].model_copy(update={"node_sets": ("gpu", "inference")})
    assert billing_weights(mixed, partition) == {"TRESBillingWeights": "CPU=1,GRES/gpu:h100=80,GRES/gpu:l4=22"}
