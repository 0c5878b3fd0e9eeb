"""Control groups, mounts, packages, kernel settings and netlink: what is read from the machine and what is decided from it."""

import errno
import json
import struct
from pathlib import Path

import pytest

from local import cgroups, mounts, packages, probe, tunables
from local.layout import NODES, WORKERS, find_paths

V1 = """24 21 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw
25 24 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
26 24 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 24 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
28 24 0:24 / /mnt/other/memory rw - cgroup cgroup rw,memory
26 24 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""
V2 = "24 21 0:20 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n30 24 0:30 / /proc rw - proc proc rw\n"
ROOT = Path("/sys/fs/cgroup")


def test_version_1_hierarchies_are_found_once_each() -> None:
    found = cgroups.find_hierarchies(V1)
    assert found == [ROOT / "cpu,cpuacct", ROOT / "memory", ROOT / "unified"]
    assert not cgroups.is_v2(found)
    assert cgroups.tracking(found) == ROOT / "memory"
    assert cgroups.missing_controllers(found, "") == ["cpuset", "pids"]


def test_version_2_is_one_hierarchy() -> None:
    found = cgroups.find_hierarchies(V2)
    assert found == [ROOT]
    assert cgroups.is_v2(found)
    assert cgroups.tracking(found) == ROOT
    assert cgroups.missing_controllers(found, "cpuset cpu io memory pids\n") == []
    assert cgroups.missing_controllers(found, "cpuset cpu io pids\n") == ["memory"]


def test_nodes_mounts_come_from_its_folder_and_are_marked_when_complete() -> None:
    paths = find_paths(Path("/a tree"), {"HOME": "/root"})
    lines = mounts.render_script(WORKERS[0], paths).splitlines()
    assert lines[0] == "mount --make-rshared /"
    assert "mount --bind '/a tree/.slipway/nodes/worker-0/kubelet' /var/lib/kubelet" in lines
    assert lines[-2:] == ["mount --bind /run/slipway/worker-0 /run", f"touch /run/{mounts.COMPLETE}"]


def test_mount_points_with_spaces_are_read() -> None:
    assert mounts.mount_points("24 21 0:20 / /a\\040b rw - tmpfs tmpfs rw\n") == {"/a b"}


def test_every_bound_folder_is_absolute_and_its_own() -> None:
    assert len(set(mounts.BOUND.values())) == len(mounts.BOUND)
    assert all(target.is_absolute() for target in mounts.BOUND.values())
    assert len({mounts.enter(node, find_paths(Path("/t"))) for node in NODES}) == len(NODES)


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        pytest.param(packages.PACKAGES, [], id="all there"),
        pytest.param(set(packages.PACKAGES) - {"/usr/sbin/runc", "/usr/bin/etcd"}, ["etcd-server", "runc"], id="two missing"),
        pytest.param([], sorted(set(packages.PACKAGES.values())), id="bare"),
    ],
)
def test_only_missing_packages_are_installed(present: list[str], missing: list[str]) -> None:
    assert packages.missing_packages(present) == missing


def test_install_that_was_killed_is_ended_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else apt refuses: "dpkg was interrupted, you must manually run 'dpkg --configure -a'"."""
    for name in ("dpkg", "apt-get", "systemctl"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/said\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(packages, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(packages, "find_missing", list)
    packages.install(["runc"])
    said = (tmp_path / "said").read_text().splitlines()
    assert said[0] == "dpkg --force-confold --configure -a"
    assert said[1].startswith("apt-get ")
    assert said[1].endswith(" install -y --no-install-recommends runc")
    assert not packages.POLICY.exists()


@pytest.mark.parametrize(
    ("current", "raised"),
    [
        pytest.param({"fs/inotify/max_user_instances": 128}, {"fs/inotify/max_user_instances": 1024}, id="too low"),
        pytest.param({"fs/inotify/max_user_instances": 8192}, {}, id="higher than ours"),
        pytest.param({}, {}, id="not in this kernel"),
    ],
)
def test_kernel_settings_are_only_raised(current: dict[str, int], raised: dict[str, int]) -> None:
    assert tunables.plan_raise(current) == raised


def test_machine_gets_its_settings_back_however_often_they_were_raised(tmp_path: Path) -> None:
    proc, file = tmp_path / "proc", tmp_path / "saved.json"
    for name, value in {**dict.fromkeys(tunables.RAISED, 1), **dict.fromkeys(tunables.TOUCHED_BY_KUBELET, 7)}.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).write_text(f"{value}\n")
    tunables.remember_and_raise(file, proc)
    tunables.remember_and_raise(file, proc)
    assert int((proc / "fs/inotify/max_user_instances").read_text()) == 1024
    (proc / "kernel/panic").write_text("10")
    tunables.restore(file, proc)
    assert {int((proc / name).read_text()) for name in tunables.RAISED} == {1}
    assert int((proc / "kernel/panic").read_text()) == 7
    assert not file.exists()
    tunables.restore(file, proc)


def test_setting_that_another_kernel_lacks_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/panic").write_text("10")
    (tmp_path / "saved.json").write_text('{"vm/panic_on_oom": 1, "kernel/panic": 3}')
    tunables.restore(tmp_path / "saved.json", tmp_path)
    assert (tmp_path / "kernel/panic").read_text() == "3"
    assert not (tmp_path / "saved.json").exists()


def test_saved_settings_are_plain_json(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/panic").write_text("3\n")
    tunables.remember_and_raise(tmp_path / "saved.json", tmp_path)
    assert json.loads((tmp_path / "saved.json").read_text()) == {"kernel/panic": 3}


def test_netlink_attributes_are_padded_and_say_their_length() -> None:
    assert probe.attribute(3, b"ab\0") == struct.pack("=HH", 7, 3) + b"ab\0\0"
    request = probe.message(16, 0x400, b"body")
    assert struct.unpack("=IHH", request[:8]) == (len(request), 16, 0x405)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, 0), 0, id="acknowledged"),
        pytest.param(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -errno.EOPNOTSUPP), errno.EOPNOTSUPP, id="refused"),
        pytest.param(struct.pack("=IHHIIi", 20, 2575, 0, 1, 0, 5), 0, id="an answer"),
    ],
)
def test_netlink_replies_are_told_apart(reply: bytes, error: int) -> None:
    assert probe.reply_error(reply) == error


def test_missing_features_carry_the_kernels_reason() -> None:
    def refuse() -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    assert probe.missing({"veth": refuse, "bridge": lambda: None}) == ["veth (Operation not supported)"]
