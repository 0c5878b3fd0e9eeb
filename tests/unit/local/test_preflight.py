"""Every thing that a machine may lack is named, all at once, with a remedy."""

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

from local import layout, processes
from local.layout import find_paths
from local.preflight import Disk, Facts, PreflightError, available_mib, faults, foreign_routes, other_owner, require

FIT = Facts(
    is_root=True,
    is_linux=True,
    has_apt=True,
    missing_packages=("runc",),
    memory_mib=16000,
    disks=(Disk(Path("/s"), 50000, 6144, "state"),),
    missing_controllers=(),
    missing_features=(),
    ports_in_use=(),
    ranges_in_use=(),
    other_cluster=None,
    is_running=False,
)
FULL = (Disk(Path("/s"), 10, 6144, "the cluster's state"),)

CASES = [
    pytest.param(replace(FIT, is_root=False), ["root", "sudo"], id="not root"),
    pytest.param(replace(FIT, has_apt=False), ["runc", "no apt-get"], id="no apt"),
    pytest.param(replace(FIT, memory_mib=900), ["900 MiB", "4096", "End other programs"], id="memory"),
    pytest.param(replace(FIT, disks=FULL), ["/s", "10 MiB", "6144", "Make room"], id="disk"),
    pytest.param(replace(FIT, missing_controllers=("memory", "pids")), ["memory, pids", "cgroup_enable"], id="control groups"),
    pytest.param(replace(FIT, missing_features=("veth (Operation not supported)",)), ["veth", "not supported", "module"], id="kernel"),
    pytest.param(replace(FIT, ports_in_use=(6443,)), ["6443", "kube-apiserver", "End that program"], id="port"),
    pytest.param(replace(FIT, ranges_in_use=("198.18.4.0/22 dev tun0",)), ["198.18.4.0/22 dev tun0", "Remove"], id="range"),
    pytest.param(replace(FIT, other_cluster=Path("/o/.slipway")), ["/o/.slipway", "local down"], id="another checkout's cluster"),
]


@pytest.mark.parametrize(("facts", "words"), CASES)
def test_fault_is_named_with_its_remedy(facts: Facts, words: list[str]) -> None:
    (fault,) = faults(facts)
    assert [word for word in words if word not in fault] == []


def test_fit_machine_has_no_faults() -> None:
    assert faults(FIT) == []
    require(FIT)


def test_all_faults_are_told_at_once() -> None:
    worst = replace(
        FIT,
        is_root=False,
        has_apt=False,
        memory_mib=0,
        disks=FULL,
        missing_controllers=("pids",),
        missing_features=("nftables (No such file or directory)",),
        ports_in_use=(2379, 6443),
        ranges_in_use=("198.18.0.0/15 dev tun0",),
    )
    with pytest.raises(PreflightError) as raised:
        require(worst)
    assert str(raised.value).startswith("this machine cannot run the local cluster yet: 9 things are missing\n")
    assert len(str(raised.value).splitlines()) == 10


def test_running_cluster_is_not_asked_for_room_again() -> None:
    assert faults(replace(FIT, memory_mib=100, disks=FULL, is_running=True)) == []


def test_ports_of_another_checkouts_cluster_are_one_fault() -> None:
    assert len(faults(replace(FIT, other_cluster=Path("/o"), ports_in_use=(6443, 2379)))) == 1


def test_other_systems_are_pointed_to_a_cluster_of_their_own() -> None:
    (fault,) = faults(replace(FIT, is_linux=False, is_root=False))
    assert "make up CONTEXT=name" in fault


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("", [], id="default and unrelated"),
        pytest.param(f"{layout.BRIDGE}\t000012C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n", [], id="our bridge"),
        pytest.param("tun0\t000412C6\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0\n", ["198.18.4.0/22 dev tun0"], id="inside"),
        pytest.param("tun0\t000000C6\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n", ["198.0.0.0/8 dev tun0"], id="around"),
    ],
)
def test_foreign_routes_into_our_range_are_seen(line: str, found: list[str]) -> None:
    assert list(foreign_routes(ROUTES + line)) == found


def test_available_memory_is_read() -> None:
    assert available_mib("MemTotal:  4096000 kB\nMemAvailable:   2048000 kB\n") == 2000
    assert available_mib("MemTotal:  4096000 kB\n") == 0


@pytest.mark.parametrize(
    ("mine", "runs", "works", "is_other"),
    [
        pytest.param(True, "etcd", False, False, id="ours"),
        pytest.param(False, "etcd", False, True, id="another's, and its control plane runs"),
        pytest.param(False, "kubelet-system", False, False, id="another's, of which a kubelet is left"),
        pytest.param(False, "", False, False, id="another's, of which nothing runs"),
        pytest.param(False, "", True, True, id="another's, which is being made"),
    ],
)
def test_owner_is_another_checkout_only_while_its_cluster_is_usable(
    mine: bool, runs: str, works: bool, is_other: bool, tmp_path: Path
) -> None:
    paths = replace(find_paths(tmp_path / "mine"), runtime=tmp_path)
    other = replace(paths, state=tmp_path / "other/.slipway")
    assert other_owner(paths) is None
    paths.owner.write_text(str(paths.state if mine else other.state))
    other.state.mkdir(parents=True)
    with other.lock.open("w") as lock:
        if works:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if runs:
            processes.start(processes.Program(runs, ("sleep", "60")), other.records, other.logs)
        assert other_owner(paths) == (other.state if is_other else None)
    processes.stop(processes.running(other.records).values(), other.records, grace_s=0)
    assert other_owner(paths) is None
