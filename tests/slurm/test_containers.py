"""Containers of jobs on a real two-node cluster: srun, sbatch and salloc with images from real registries, public and private, and files.

The images are built here from busybox. What a container must not give its user is in the second half, with every way to fail of a pull.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.bench import containers as benchmark
from tests.bench.smallest import assert_yields_figures
from tests.support.slurm import container_site as site
from tests.support.slurm.container_cluster import (
    CACHE,
    ONE,
    Site,
    assert_has_all_files,
    begin_slow_pull,
    big,
    rest,
    signal_pulls,
    world,
)
from tests.support.slurm.container_site import PASSWORD, PRIVATE, PUBLIC, USER, entry, folder
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE, BOB
from tests.support.slurm.root_cluster import WORKERS, stand_in

FIXTURES = (world,)


@pytest.fixture(autouse=True)
def idle(world: Site) -> None:
    """Each test starts with idle workers, and both registries."""
    rest(world)


def test_step_runs_in_the_image_with_its_environment_and_folder(world: Site) -> None:
    said = world.srun(
        ONE, "cat /etc/word; id -u; pwd; echo $FROM_IMAGE $BOTH; test $SLURM_JOB_ID -gt 0 && echo slurm; ls /usr || echo none"
    )
    assert said.splitlines()[:5] == ["one", str(ALICE), "/work", "yes image", "slurm"]
    assert "none" in said.splitlines()


def test_containers_run_where_there_is_no_versioned_root(world: Site) -> None:
    text = (world.cluster.machine.folder / "volume-root/root.conf").read_text()
    world.cluster.settings(None)
    try:
        assert world.srun(ONE, "cat /etc/word; ls /usr || echo none", "--nodes=2", "--ntasks=2").split().count("one") == 2
    finally:
        world.cluster.settings(text)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"{PUBLIC}/team/one:1", id="a path in a registry"),
        pytest.param(f"docker://{PUBLIC}#team/one:1", id="as enroot writes it"),
        pytest.param(f"docker://someone@{PUBLIC}#team/one:1", id="with enroot's user"),
    ],
)
def test_image_can_be_named(world: Site, name: str) -> None:
    assert world.srun(quote(name), "cat /etc/word") == "one"


def test_image_can_be_named_by_digest_and_then_needs_no_registry(world: Site) -> None:
    digest = world.public.push(world.image("pinned", [site.base_layer("pinned")]), "team/pinned:1")
    name = f"docker://{PUBLIC}/team/pinned@{digest}"
    assert world.srun(name, "cat /etc/word", "--nodelist=gpu-0") == "pinned"
    world.public.stop()
    assert world.srun(name, "cat /etc/word", "--nodelist=gpu-0") == "pinned"


def test_name_without_a_registry_says_what_to_write(world: Site) -> None:
    assert "docker://registry.example.com/team/ubuntu:24.04" in world.refused("ubuntu:24.04")


@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive", "squashfs"])
def test_image_from_a_file_is_run(world: Site, kind: str) -> None:
    home = world.cluster.machine.folder / "volume-home/alice"
    layout = world.cluster.machine.folder / "image-one"
    path = home / f"{kind}.{'sqsh' if kind == 'squashfs' else 'tar'}"
    if kind == "squashfs":
        world.srun(ONE, "echo saved > /etc/word", f"--container-save=/home/alice/{path.name}")
    else:
        made = ["skopeo", "--insecure-policy", "copy", "--quiet", f"oci:{layout}:latest", f"{kind}:{path}:x:latest"]
        subprocess.run(made, check=True, capture_output=True)
        os.chown(path, ALICE, ALICE)
    said = world.srun(f"/home/alice/{path.name}", "cat /etc/word; pwd; echo $FROM_IMAGE")
    assert said.split() == ["saved" if kind == "squashfs" else "one", "/work", "yes"]


def test_mounts_home_read_only_and_workdir_hold(world: Site) -> None:
    world.cluster.ssh("mkdir -p data; echo set > data/file")
    options = "--container-mounts=/home/alice/data:/data:ro,/home/alice/data:/w/deep --container-workdir=/data --container-readonly"
    said = world.srun(
        ONE, "cat file; touch /data/x || echo ro; touch /w/deep/y; touch /z || echo ro; ls /home/alice || echo nohome", options, check=False
    )
    assert [line for line in said.splitlines() if ":" not in line] == ["set", "ro", "ro", "nohome"]
    assert "data" in world.srun(ONE, "ls $HOME", "--container-mount-home").split()
    assert world.cluster.ssh("ls data").split() == ["file", "y"]


def test_tmp_is_the_jobs_and_the_environments_list_wins(world: Site) -> None:
    step = f"srun --container-image={ONE}"
    probe = (
        f"echo there > /tmp/mark; export BOTH=job; {step} --container-env=BOTH sh -c 'cat /tmp/mark; echo $BOTH'; {step} sh -c 'echo $BOTH'"
    )
    job = world.cluster.batch(probe)
    assert world.cluster.out(job).split() == ["there", "job", "image"]


def test_scratch_of_the_job_is_in_its_containers(world: Site) -> None:
    inside = f"srun --container-image={ONE} sh -c 'cat /scratch/file; touch /scratch/new'"
    script = f"srun sh -c 'echo of the job >/scratch/file'; {inside}; ls /scratch"
    assert world.cluster.out(world.cluster.batch(script, "--nodelist=gpu-1")).splitlines() == ["of the job", "file", "new"]


def test_remapped_root_is_root_of_nothing_but_its_files(world: Site) -> None:
    script = "id -u; touch /y; chown 33:33 /y && echo chowned; cat /shadow 2>&1; touch /host/z 2>&1; mknod /dev/zz c 1 3 2>&1; echo end"
    said = world.srun(ONE, script, "--container-remap-root", "--container-mounts=/etc/shadow:/shadow,/etc:/host", check=False)
    assert said.splitlines()[:2] == ["0", "chowned"]
    assert "alice:" not in said
    assert said.count("denied") + said.count("not permitted") + said.count("Read-only") >= 3, said


def test_apt_stays_the_root_of_a_container_with_a_remapped_root(world: Site) -> None:
    """tests/soak/test_packages.py has apt itself, and an index of packages."""
    script = "cat /etc/apt/apt.conf.d/*"
    assert world.srun(ONE, script, "--container-remap-root") == 'APT::Sandbox::User "root";'
    assert "No such file" in world.srun(ONE, f"{script} 2>&1", check=False)


def test_batch_script_runs_in_the_container_and_salloc_gives_it_to_steps(world: Site) -> None:
    job = world.cluster.ssh(
        f"printf '#!/bin/sh\\ncat /etc/word; pwd\\n' > in.sh; sbatch --wait --parsable --output=in.out --container-image={ONE} in.sh"
    )
    assert job.isdigit()
    assert world.cluster.ssh("cat in.out").split() == ["one", "/work"]
    assert world.cluster.ssh(f"salloc --quiet --container-image={ONE} srun cat /etc/word") == "one"


def test_named_container_lasts_for_the_job_and_is_gone_after_it(world: Site) -> None:
    first = f"srun --container-image={ONE} --container-name=box sh -c 'echo kept > /mine'"
    job = world.cluster.batch(f"{first}; srun --container-name=box cat /mine", "--nodelist=gpu-0")
    assert world.cluster.out(job) == "kept"
    assert "no container of this job has that name" in world.cluster.ssh("srun --container-name=box true", check=False)
    wait_for("an empty folder of jobs", lambda: world.cluster.inside("gpu-0", f"ls {CACHE}/{ALICE}/jobs") == "")


def test_driver_files_are_found_in_the_container(world: Site) -> None:
    for node in WORKERS:
        stand_in(world.cluster, node, "570.1")
    try:
        said = world.srun(ONE, "nvidia-smi; ls $LD_LIBRARY_PATH; ls /dev/nvidia0", "--gpus=1")
        assert "smi-570.1" in said
        assert "libcudx.so.1" in said
        assert "/dev/nvidia0" in said
    finally:
        for node in WORKERS:
            world.cluster.inside(node, "rm -rf /run/nvidia/lib /run/nvidia/bin")


def test_tasks_of_a_node_share_namespaces_and_all_nodes_have_one_image(world: Site) -> None:
    """As MPI's shared memory between processes needs it: reading another rank's memory takes a common user namespace."""
    script = "echo $SLURM_NODEID $(readlink /proc/self/ns/user) $(readlink /proc/self/ns/mnt) $(cat /etc/word)"
    said = world.srun(ONE, script, "--nodes=2", "--ntasks-per-node=2").splitlines()
    assert (len(said), len(set(said)), {line.split()[-1] for line in said}) == (4, 2, {"one"})


OURS = "--container-mounts=/usr,/lib,/lib64,/etc/openmpi,/etc/alternatives"
"""What makes the image run the cluster's own Python and OpenMPI: one with its own would be a hundred times as large."""

READ = """
import ctypes, os, time
from pathlib import Path
libc, mark, done = ctypes.CDLL(None, use_errno=True), Path("/tmp/mark"), Path("/tmp/done")
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
own = ctypes.create_string_buffer(b"from rank 0" if os.environ["SLURM_PROCID"] == "0" else 11)
if os.environ["SLURM_PROCID"] == "0":
    Path("/tmp/part").write_text(f"{os.getpid()} {ctypes.addressof(own)}")
    Path("/tmp/part").rename(mark)
    while not done.exists():
        time.sleep(0.01)
else:
    while not mark.exists():
        time.sleep(0.01)
    process, address = map(int, mark.read_text().split())
    mine, other = Vector(ctypes.addressof(own), 11), Vector(address, 11)
    got = libc.process_vm_readv(process, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0)
    print(got, own.raw[:11].decode(), os.strerror(ctypes.get_errno()))
    done.touch()
"""


def test_ranks_of_a_node_read_each_others_memory(world: Site) -> None:
    (world.cluster.machine.folder / "volume-home/alice/read.py").write_text(READ)
    options = f"--nodes=1 --ntasks=2 --container-mount-home {OURS}"
    assert world.srun(ONE, "exec /usr/bin/python3 $HOME/read.py", options) == "11 from rank 0 Success"


def test_sixty_four_ranks_start_at_once_in_one_container(world: Site) -> None:
    step = f"srun --overcommit --ntasks=64 --container-image={ONE} readlink /proc/self/ns/mnt"
    said = world.cluster.ssh(f"salloc --quiet --nodes=1 --ntasks=2 {step}").split()
    assert len(said) == 64
    assert len(set(said)) == 1


def test_moved_tag_is_the_same_for_all_steps_of_a_job(world: Site) -> None:
    name = world.push("moving")
    step = f"--container-image={name} cat /etc/word"
    first, second = f"srun --nodes=1 --ntasks=1 --nodelist=gpu-0 {step}", f"srun --nodes=2 --ntasks=2 {step}"
    script = f"#!/bin/bash\n{first}\ntouch began; for i in $(seq 600); do [[ -e go ]] && break; sleep 0.1; done\n{second}"
    job = world.cluster.ssh(f"sbatch --parsable --nodes=2 --output=out.%j <<'X'\n{script}\nX")
    wait_for("the first step", lambda: "began" in world.cluster.ssh("ls").split())
    world.public.push(world.image("moved", [site.base_layer("moved")]), "team/moving:1")
    world.cluster.ssh("touch go")
    wait_for("its end", lambda: world.cluster.state(job) == "COMPLETED")
    assert world.cluster.out(job).split() == ["moving"] * 3
    world.cluster.ssh("rm began go")
    assert world.srun(name, "cat /etc/word") == "moved"


# Refusals: each is one line in the job's stderr.


def test_missing_image_is_one_line(world: Site) -> None:
    assert "there is no image" in world.refused(f"docker://{PUBLIC}/team/none:1")


def test_image_that_needs_a_login_is_one_line_until_the_user_has_one(world: Site) -> None:
    name = f"docker://{PRIVATE}/team/one:1"
    assert "skopeo login" in world.refused(name)
    file = "~/.config/containers/auth.json"
    world.cluster.ssh(f"skopeo login --authfile {file} --username {USER} --password-stdin {PRIVATE} <<< {PASSWORD}")
    assert world.srun(name, "cat /etc/word") == "one"
    world.cluster.ssh(f"rm {file}")


def test_login_that_the_user_has_for_enroot_is_taken(world: Site) -> None:
    world.cluster.ssh(f"mkdir -p .config/enroot; echo 'machine {PRIVATE} login {USER} password {PASSWORD}' > .config/enroot/.credentials")
    try:
        assert world.srun(f"docker://{PRIVATE}/team/one:1", "cat /etc/word", "--nodelist=gpu-1") == "one"
    finally:
        world.cluster.ssh("rm .config/enroot/.credentials")


def test_user_who_names_another_users_image_gets_nothing_of_it(world: Site) -> None:
    file = "~/.config/containers/auth.json"
    world.cluster.ssh(f"skopeo login --authfile {file} --username {USER} --password-stdin {PRIVATE} <<< {PASSWORD}")
    name = f"docker://{PRIVATE}/team/one:1"
    assert world.srun(name, "cat /etc/word", "--nodelist=gpu-0") == "one"
    assert "needs a login" in world.refused(name, user="bob")
    assert "denied" in world.cluster.ssh(f"srun --nodelist=gpu-0 ls {CACHE}/{ALICE}", user="bob", check=False)
    world.cluster.ssh("cp /usr/bin/true own.sqsh; chmod 700 . ; chmod 600 own.sqsh")
    assert "Permission denied" in world.refused("/home/alice/own.sqsh", user="bob")
    world.cluster.ssh(f"rm {file} own.sqsh; chmod 755 .")


@pytest.mark.parametrize("is_index", [False, True], ids=["one manifest", "an index"])
def test_image_of_another_architecture_is_one_line(world: Site, is_index: bool) -> None:
    name = world.push(f"arm{int(is_index)}", architecture="arm64", is_index=is_index)
    assert "is for arm64, and this node is amd64" in world.refused(name)


def test_registry_outage_before_a_pull_is_one_line_and_a_copy_is_run(world: Site) -> None:
    world.srun(ONE, "true", "--nodelist=gpu-0")
    world.public.stop()
    assert "does not answer" in world.refused(f"docker://{PUBLIC}/team/unseen:1")
    said = world.srun(ONE, "cat /etc/word", "--nodelist=gpu-0", check=False)
    assert said.splitlines()[-1] == "one" or said.splitlines()[0] == "one"
    assert "does not answer" in said
    assert "running the copy of" in said


def test_registry_outage_during_a_pull_is_one_line_and_leaves_nothing(world: Site) -> None:
    job = ""
    for attempt in range(5):
        name = big(world, f"cut{attempt}")
        job = begin_slow_pull(world, name)
        world.public.stop()
        signal_pulls(name, signal.SIGCONT)
        wait_for("its end", lambda job=job: world.cluster.state(job) in ("FAILED", "COMPLETED"), deadline_s=60)
        if world.cluster.state(job) == "FAILED":
            break
        world.public.start()  # skopeo was held too late: it had all of the image
    lines = [line for line in world.cluster.out(job).splitlines() if line.startswith("slipway: ")]
    assert ["does not answer" in line for line in lines] == [True], world.cluster.out(job)
    assert not [name for name in world.cached() if name.endswith(".part")]


def test_pull_that_is_killed_for_memory_is_one_line_with_what_to_do(world: Site) -> None:
    name = big(world, "starved")
    job = begin_slow_pull(world, name)
    signal_pulls(name, signal.SIGKILL)
    world.cluster.end(job)
    lines = [line for line in world.cluster.out(job).splitlines() if line.startswith("slipway: ")]
    assert len(lines) == 1
    assert "skopeo was killed, as programs are when the job's memory is used up: give the job more (--mem)" in lines[0]


def test_job_killed_during_a_pull_leaves_what_the_next_one_removes(world: Site) -> None:
    name = big(world, "killed")
    job = begin_slow_pull(world, name)
    world.cluster.ssh(f"scancel {job}")
    wait_for("its end", lambda: world.cluster.state(job) in ("CANCELLED", "COMPLETED", "FAILED"), deadline_s=60)
    wait_for("idle workers", world.cluster.ready, deadline_s=60)
    assert [each for each in world.cached() if each.endswith(".part")]
    assert world.srun(name, "cat /etc/word", "--nodelist=gpu-0") == "killed"
    assert not [each for each in world.cached() if each.endswith(".part")]


def test_second_job_that_wants_the_same_image_waits_for_the_first(world: Site) -> None:
    name = big(world, "twice")
    first = begin_slow_pull(world, name)
    second = world.cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output=out.%j --wrap='srun --container-image={name} cat /etc/word'")
    wait_for("the second to wait", lambda: "waiting for it" in world.cluster.out(second), deadline_s=60)
    signal_pulls(name, signal.SIGCONT)
    for job in (first, second):
        wait_for("its end", lambda job=job: world.cluster.state(job) == "COMPLETED", deadline_s=60)
        assert world.cluster.out(job).splitlines()[-1] == "twice"


@pytest.fixture
def small_cache(world: Site) -> Iterator[None]:
    """Nodes that have room for one image at a time, and no copy of any."""
    settings = world.cluster.machine.folder / "volume-slurm/plugstack.conf"
    files = {path.name: path.read_text() for path in settings.parent.iterdir() if not path.name.startswith("..")}
    world.cluster.volume("slurm", {**files, "plugstack.conf": re.sub(r"cache=\d+", "cache=100", files["plugstack.conf"])})
    world.cluster.all_have_files()
    world.cluster.inside("gpu-0", f"rm -rf {CACHE}/*/images")
    yield
    world.cluster.volume("slurm", files)
    world.cluster.all_have_files()


FULL = r"slipway: gpu-0: .*{}:1 needs about \d+ MiB, and this node's cache of images is full: \d+ of 100 MiB are used by running jobs"


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize(("user", "number"), [("alice", ALICE), ("bob", BOB)])
def test_full_cache_evicts_idle_images_of_all_users_or_prints_one_line(world: Site, user: str, number: int) -> None:
    """Once with images of one user, once of two."""
    first, second = big(world, f"full1-{user}", 30), big(world, f"full2-{user}", 30)
    waits = "for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done"
    script = f"#!/bin/sh\nsrun --container-image={first} cat /etc/word; touch began; {waits}"
    job = world.cluster.ssh(f"rm -f began go; sbatch --parsable --nodelist=gpu-0 --ntasks=1 --output=out.%j <<'X'\n{script}\nX")
    wait_for("a job that uses its image", lambda: "began" in world.cluster.ssh("ls").split(), deadline_s=60)
    said = world.srun(second, "echo INSIDE", "--nodelist=gpu-0", "--ntasks=1", user=user, check=False)
    assert re.search(FULL.format(f"full2-{user}"), said), said
    assert len([line for line in said.splitlines() if line.startswith("slipway: ")]) == 1
    assert world.cached() != []
    world.cluster.ssh("touch go")
    wait_for("its end", lambda: world.cluster.state(job) == "COMPLETED")
    assert world.srun(second, "cat /etc/word", "--nodelist=gpu-0", user=user) == f"full2-{user}"
    assert world.cached(user=number) != []
    assert user == "alice" or world.cached() == []


@pytest.mark.usefixtures("small_cache")
def test_two_users_who_pull_at_once_do_not_both_take_the_last_room(world: Site) -> None:
    first, second = big(world, "last1", 30), big(world, "last2", 30)
    job = begin_slow_pull(world, first)
    try:
        assert re.search(FULL.format("last2"), world.refused(second, "--ntasks=1", user="bob"))
    finally:
        signal_pulls(first, signal.SIGCONT)
    wait_for("its end", lambda: world.cluster.state(job) == "COMPLETED", deadline_s=60)
    assert world.cluster.out(job).splitlines()[-1] == "last1"
    assert world.srun(second, "cat /etc/word", "--nodelist=gpu-0", user="bob") == "last2"
    assert set(world.cluster.inside("gpu-0", f"cat {CACHE}/room/[0-9]* 2>/dev/null || true").split()) <= {"0"}


def test_image_larger_than_the_disk_is_one_line(world: Site) -> None:
    name = big(world, "large", 40)
    world.cluster.inside(
        "gpu-0", f"mkdir -p {CACHE}/{ALICE} && mount -t tmpfs -o size=60m tmpfs {CACHE}/{ALICE} && chown {ALICE}:{ALICE} {CACHE}/{ALICE}"
    )
    try:
        assert re.search(r"needs about \d+ MiB, and this node's disk for containers has \d+ MiB free", world.refused(name))
    finally:
        world.cluster.inside("gpu-0", f"umount {CACHE}/{ALICE}")


def test_image_of_5_000_files_has_them_all(world: Site) -> None:
    """The long one: tests/soak/test_containers.py."""
    assert_has_all_files(world, 5_000)


def test_image_with_setuid_programs_and_devices_gives_no_rights(world: Site) -> None:
    name = world.push(
        "rights",
        entry("suid/id", Path(shutil.which("busybox") or "/bin/busybox").read_bytes(), 0o4755),
        entry("dev/mem0", mode=0o666, kind=b"3"),
        entry("zero", mode=0o666, kind=b"3"),
    )
    said = world.srun(
        name,
        "/suid/id -u; test -c /zero && echo device; chroot / true 2>&1; grep Cap /proc/self/status; grep NoNewPrivs /proc/self/status",
        check=False,
    )
    assert said.splitlines()[0] == str(ALICE)
    assert "device" not in said.split()
    assert "CapEff:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said


def test_links_of_an_image_lead_nowhere_outside_it(world: Site) -> None:
    """Neither unpacking nor the container's own mounts follow them: /etc/passwd, /tmp and others are links here."""
    world.cluster.ssh("echo mine > precious; mkdir -p target")
    home = "/home/alice"
    name = world.push(
        "links",
        entry("etc/passwd", kind=b"2", link=f"{home}/precious"),
        entry("tmp", kind=b"2", link=f"{home}/target"),
        entry("loop", kind=b"2", link="loop"),
        entry("out", kind=b"2", link=home),
        entry("out/planted", b"planted"),
        entry("up", kind=b"2", link="../../../../../../home/alice"),
        entry("up/planted2", b"planted"),
    )
    said = world.srun(
        name, "cat /etc/word; ls -d /tmp/.; cat /loop; echo x > /data/file", "--container-mounts=/home/alice/target:/data", check=False
    )
    assert "links" in said.split()
    assert world.cluster.ssh("cat precious; ls").splitlines()[0] == "mine"
    assert not {"planted", "planted2"} & set(world.cluster.ssh("ls").split())
    assert "container has no place for it" in world.refused(name, "--container-mounts=/home/alice/target:/loop/x")


def test_whiteout_of_etc_removes_it(world: Site) -> None:
    layers = [site.base_layer("first"), site.layer([entry(".wh.etc", b""), folder("etc2")])]
    world.public.push(world.image("whiteout", layers), "team/whiteout:1")
    said = world.srun(f"docker://{PUBLIC}/team/whiteout:1", "ls /etc; cat /etc/word; id", check=False)
    assert "first" not in said
    assert "hosts" in said.split()
    assert f"uid={ALICE}(alice)" in said


def test_nobody_else_can_enter_or_read_a_users_container(world: Site) -> None:
    job = world.cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output=out.%j --wrap='srun --container-image={ONE} sleep 300'")
    wait_for("the container", lambda: "step-0" in world.cluster.inside("gpu-0", f"ls {CACHE}/{ALICE}/jobs/{job} || true", check=False))
    try:
        look = "for p in /proc/[0-9]*; do cat $p/root/etc/word; done 2>/dev/null | sort -u"
        probe = f"{look}; ls {CACHE}/{ALICE}; echo x > {CACHE}/x"
        said = world.cluster.ssh(f"srun --overlap --nodelist=gpu-0 bash -c {quote(probe)}", user="bob", check=False)
        assert "one" not in said.split()
        assert said.count("denied") == 2, said
    finally:
        world.cluster.ssh(f"scancel {job}")


def test_registry_that_nobody_knows_is_one_line(world: Site) -> None:
    assert "does not answer" in world.refused("docker://no-such-registry.example.com/x:1")


def test_program_that_pulls_is_compiled_in_the_image(image_root: Path) -> None:
    """Each job's first container on a node starts it, from a folder in which Python can keep nothing."""
    folder = image_root / "usr/lib/slipway/containers"
    assert {each.name.split(".")[0] for each in folder.glob("__pycache__/*.pyc")} == {each.stem for each in folder.glob("*.py")}


def test_benchmark_of_containers_yields_its_figures(world: Site) -> None:
    assert_yields_figures(benchmark.BENCHMARK, world=world)
