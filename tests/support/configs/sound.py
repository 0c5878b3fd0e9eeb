"""Edits of an example stack by what they touch, and a table of those that are right."""

# ruff: noqa: E501 - a table reads best with a row on a line

from typing import Any

import pytest

from tests.support.configs.stacks import GONE

MOUNT = {"name": "data", "mountPath": "/data"}
NFS = {"server": "10.0.0.5", "path": "/export"}
DISK = {"name": "more", "check": "disk", "schedule": "0 * * * *", "nodeSets": ["cpu"]}
BURST_BUFFER = """
function slurm_bb_job_process(script, uid, gid) return slurm.SUCCESS, "" end
function slurm_bb_pools() return slurm.SUCCESS, '{"pools": [{"id": "fast", "quantity": 4, "granularity": 1}]}' end
function slurm_bb_job_teardown() return slurm.SUCCESS, "" end
function slurm_bb_setup() return slurm.SUCCESS, "" end
function slurm_bb_data_in() return slurm.SUCCESS, "" end
function slurm_bb_test_data_in() return slurm.SUCCESS, "" end
function slurm_bb_real_size() return slurm.SUCCESS, "" end
function slurm_bb_paths() return slurm.SUCCESS, "" end
function slurm_bb_pre_run() return slurm.SUCCESS, "" end
function slurm_bb_post_run() return slurm.SUCCESS, "" end
function slurm_bb_data_out() return slurm.SUCCESS, "" end
function slurm_bb_test_data_out() return slurm.SUCCESS, "" end
function slurm_bb_get_status() return slurm.SUCCESS, "" end
return slurm.SUCCESS
"""
WITHOUT_GPUS = {"nodeSets[1].gpus": GONE, "nodeSets[1].simulatedGpus": False, "healthChecks[3]": GONE}


def slurmd(**given: Any) -> dict[str, Any]:
    return {"nodeSets[0].slurmd": given}


def partition(**given: Any) -> dict[str, Any]:
    return {"partitions[0].settings": given}


def alone(**given: Any) -> dict[str, Any]:
    """Settings of a stack without health checks beside jobs."""
    return {**settings(**given), "healthChecks[4]": GONE}


def settings(**given: Any) -> dict[str, Any]:
    return {"slurm": {"settings": given}}


def files(given: dict[str, str], **more: Any) -> dict[str, Any]:
    """Files beside slurm.conf, with what else the stack says."""
    return {**more, "slurm": {**more.get("slurm", {}), "files": given}}


def items(*given: str) -> dict[str, Any]:
    return {"slurm": {"schedulerParameters": [*given]}}


def raw(*lines: str) -> dict[str, Any]:
    return {"slurm": {"raw": [*lines]}}


def nfs(*options: str, **given: Any) -> dict[str, Any]:
    return {"storage.mounts": [{**MOUNT, "nfs": {**NFS, **given, "options": [*options]}}]}


def check(**given: Any) -> dict[str, Any]:
    return {"healthChecks[+]": {**DISK, **given}}


def qos(**given: Any) -> dict[str, Any]:
    return {"accounting.qos[+]": {"name": "more", **given}}


SOUND = [
    pytest.param("dev", slurmd(CoreSpecCount=1, MemSpecLimit="0x100", Weight="INFINITE", TmpDisk=0), id="node"),
    pytest.param("dev", slurmd(CpuSpecList="0"), id="kept-cpu"),
    pytest.param("dev", slurmd(CpuBind="Cores"), id="binding-in-the-plural"),
    pytest.param("dev", partition(MinNodes=2, MaxNodes=100, MaxMemPerCPU=1024, OverSubscribe="FORCE:4", Exclusive="user", LLN=True), id="partition"),
    pytest.param("dev", partition(AllowGroups="alice,root", AllocNodes="ALL", Alternate="gpu", TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu:h100=2"), id="names-of-a-partition"),
    pytest.param("dev", {**partition(AllowAccounts="anything", DenyQos="slow"), "accounting.accounts": GONE}, id="accounts-that-an-administrator-keeps"),
    pytest.param("dev", {"partitions[1].settings": {"DefCpuPerGPU": 1, "DefMemPerGPU": 512}}, id="shares-of-a-gpu"),
    pytest.param("dev", items("bf_continue", "BF_Window=10080", "sched_interval=-1", "bf_hetjob_prio=min", "defer"), id="scheduler"),
    pytest.param("dev", settings(PriorityWeightTRES="cpu=1,FS/Disk=2,GRES/gpu:h100=-3,Mem=0.5", Licenses="matlab:4,ansys"), id="weights"),
    pytest.param("dev", {**WITHOUT_GPUS, **settings(AccountingStorageTRES="license/matlab", PriorityWeightTRES="license/matlab=2", Licenses="matlab:4")}, id="tracked-license"),
    pytest.param("dev", settings(AccountingStorageTRES="license/matlab,gres/gpu", Licenses="matlab:4"), id="license-tracked-beside-gpus"),
    pytest.param("dev", settings(SlurmctldParameters="rl_enable,rl_refill_rate=10,enable_configless", PrologFlags="Serial"), id="items-added-to-lists"),
    pytest.param("dev", settings(SlurmUser="slurm", GresTypes="gpu", ReturnToService=2, ProctrackType="proctrack/cgroup", MaxJobCount=100_000), id="settings-as-rendered"),
    pytest.param("dev", raw("SlurmUser=slurm", "MpiDefault=pmi2", "JobRequeue=YES"), id="raw-lines-as-rendered"),
    pytest.param("dev", files({"burst_buffer.lua": BURST_BUFFER}, **settings(BurstBufferType="burst_buffer/lua")), id="burst-buffer-with-its-script"),
    pytest.param("dev", {**files({"topology.conf": "SwitchName=s Nodes=cpu-[0-1],gpu-[0-1],burst-[0-1]\n"}, **settings(TopologyPlugin="topology/tree")), "topologies": []}, id="topology-with-its-file"),
    pytest.param("dev", files({"site.sh": "#!/bin/sh\nexit 0\n"}, **settings(Prolog="/shared/prolog", Epilog="site.sh")), id="prolog-and-epilog-beside-checks"),
    pytest.param("dev", {"slurm": {"selectTypeParameters": "CR_Core_Memory,CR_ONE_TASK_PER_CORE,CR_LLN"}}, id="selection-with-options"),
    pytest.param("dev", {"slurm": {"cgroupSettings": {"CgroupJobIdPaths": True}}}, id="cgroups-by-job-number"),
    pytest.param("dev", {"partitions[1].name": "std.q", "nodeSets[0].features": ["80G"]}, id="names-of-other-sites"),
    pytest.param("dev", settings(PrivateData="jobs,usage", DebugFlags="backfill,Gres", SrunPortRange="60001-63000", RequeueExit="1-9,18"), id="words"),
    pytest.param("dev", {**settings(PreemptType="preempt/partition_prio", PreemptMode="SUSPEND,GANG"), "partitions[0].settings": {"PreemptMode": "OFF"}, "partitions[1].settings": {"PreemptMode": "suspend", "GraceTime": 60}}, id="preemption"),
    pytest.param("dev", {**raw("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE", "PriorityWeightAssoc=5"), **partition(GraceTime=60)}, id="preemption-in-raw-lines"),
    pytest.param("dev", settings(PreemptMode="GANG"), id="time-slices-without-preemption"),
    pytest.param("dev", alone(HealthCheckProgram="/opt/check", HealthCheckInterval=120, HealthCheckNodeState="IDLE,CYCLE"), id="health-check"),
    pytest.param("dev", raw("NodeName=old-[1-3] NodeAddr=198.18.255.[11-13] CPUs=1", "NodeSet=fast Nodes=old-1,cpu-0", "DownNodes=old-2", "PartitionName=old Nodes=fast,old-3"), id="raw-lines"),
    pytest.param("dev", nfs("nfsvers=4.2", "hard", "nconnect=4", "ac"), id="mount-options"),
    pytest.param("dev", {"storage.mounts": [{**MOUNT, "readOnly": True, "nfs": {"server": "fd00::1", "path": "/e.x/..y", "options": ["ro"]}}]}, id="nfs-by-ipv6"),
    pytest.param("dev", {"images": {"slurm": "localhost:5000/a_b/c--d__e:x_1", "root": "localhost:5000/a_b/c--d__e:x_1"}}, id="image-of-a-local-registry"),
    pytest.param("dev", {"images": {"slurm": f"slurm@sha256:{'0' * 64}"}, "storage.root": {"versions": [{"name": "1", "image": "root:1"}]}}, id="image-by-digest"),
    pytest.param("dev", check(schedule="0 0 30 1,2 *"), id="thirtieth-of-some-months"),
    pytest.param("dev", check(schedule="*/59 */23 1-31/2 */11 mon-fri/2"), id="long-steps"),
    pytest.param("h100", {"nodePools[1].eks.taints[+]": {"key": "slipway.dev/pool", "value": "cpu", "effect": "NoExecute"}}, id="one-key-with-two-effects"),
    pytest.param("h100", {"nodePools[1].eks.amiType": "BOTTLEROCKET_x86_64_FIPS"}, id="bottlerocket"),
    pytest.param("h100", {"login.service.annotations": {"Service.Beta.kubernetes.io/x": "y z", "plain": ""}}, id="annotations"),
    pytest.param("h100", {"login.ldap.uris": ["ldaps://[fd00::1]", "ldaps://[fd00::1]:1636", "ldaps://a:1636"]}, id="ldap-by-ipv6"),
    pytest.param("h100", {"accounting.purge.jobs": "65535hours"}, id="longest-age"),
    pytest.param("h100", qos(usageThreshold=0.5, flags=["EnforceUsageThreshold"], limits={"minTresPerJob": "mem=4096", "maxTresPerJob": "mem=4G"}), id="threshold"),
]  # fmt: skip
