"""Every flag that people know from Pyxis, on a real two-node cluster: it does what it says, or one line says what to write instead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.container_cluster import CACHE, ONE, Site, containers, rest
from tests.slurm.image_cluster import ALICE
from tests.slurm.image_pods import wait_for

STEP = f"srun --container-image={ONE}"
ALONE = "--exact --ntasks=1 --mem=64"
"""Of a step that leaves room for another one."""


@pytest.fixture(scope="module")
def world(image_root: Path) -> Iterator[Site]:
    """Two nodes, a versioned root, two registries."""
    with containers(Path("/var/tmp/slipway-container-flags"), "swcf-", image_root) as world:
        yield world


@pytest.fixture(autouse=True)
def idle(world: Site) -> None:
    """Each test starts with idle workers, and both registries."""
    rest(world)


def job(world: Site, script: str, *options: str) -> list[str]:
    """The lines of a job's output, without srun's own."""
    lines = world.cluster.out(world.cluster.batch(script, "--nodelist=gpu-0", *options)).splitlines()
    return [line for line in lines if not line.startswith("srun: ")]


def test_last_of_two_opposite_flags_counts(world: Site) -> None:
    options = "--container-mount-home --no-container-mount-home --container-remap-root --no-container-remap-root"
    said = world.srun(ONE, "ls /home/alice 2>/dev/null || echo nohome; id -u; touch /z && echo writable", options, "--container-writable")
    assert said.splitlines() == ["nohome", str(ALICE), "writable"]
    said = world.srun(ONE, "touch /z 2>/dev/null || echo ro", "--container-writable --container-readonly")
    assert said == "ro"


def test_image_keeps_its_entrypoint_to_itself(world: Site) -> None:
    """That of the tests' images fails at once."""
    assert world.srun(ONE, "cat /etc/word", "--no-container-entrypoint") == "one"


def test_paths_that_begin_with_a_dot_start_in_the_jobs_folder(world: Site) -> None:
    world.cluster.ssh("mkdir -p rel/data; echo set > rel/data/file")
    step = f"cd rel; {STEP} --container-mounts=./data:/data:ro+rprivate,../rel:/up --container-save=./saved.sqsh"
    assert world.cluster.ssh(f"{step} sh -c 'cat /data/file /up/data/file; touch /data/x 2>/dev/null || echo ro'").split() == [
        "set",
        "set",
        "ro",
    ]
    assert world.cluster.ssh("cd rel; srun --container-image=./saved.sqsh cat /etc/word") == "one"
    assert job(world, "cd rel; srun --container-image=../rel/saved.sqsh cat /etc/word") == ["one"]


def test_steps_in_two_folders_name_two_images_by_the_same_words(world: Site) -> None:
    other = world.push("other")
    save = "--container-save=./x.sqsh"
    script = f"mkdir -p f1 f2; (cd f1; {STEP} {save} true); (cd f2; srun --container-image={other} {save} true)"
    run = "for name in f1 f2; do (cd $name; srun --container-image=./x.sqsh cat /etc/word); done"
    assert job(world, f"{script}; {run}") == ["one", "other"]


def test_image_of_another_daemon_is_refused_with_what_to_do(world: Site) -> None:
    said = world.cluster.ssh("srun --container-image=dockerd://busybox:1 true", check=False)
    assert "push the image to a registry" in said
    assert "docker save" in said


@pytest.mark.parametrize("flag", ["--container-entrypoint", "--container-entrypoint-log"])
def test_entrypoint_is_refused_with_what_to_write_instead(world: Site, flag: str) -> None:
    assert "write it before the program" in world.cluster.ssh(f"{STEP} {flag} true", check=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param("--container-mounts=data:/data", "neither /SRC:/DST nor ./SRC:/DST", id="a mount without a dot"),
        pytest.param("--container-mounts=./data", "neither /SRC:/DST nor ./SRC:/DST", id="a relative mount without a target"),
        pytest.param("--container-mounts=/a:/b:rx", "flags are ro, rw, private and slave, not rx", id="an unknown flag"),
        pytest.param("--container-mounts=/a:/b:ro:x", "not more", id="too many parts"),
        pytest.param("--container-name=../x", "--container-name", id="a name that is a path"),
        pytest.param("--container-name=box:run", ":auto, :create, :exec or :no_exec, not :run", id="an unknown use"),
        pytest.param("--container-save=x.sqsh", "neither /path nor ./path", id="a file without a dot"),
        pytest.param("--container-workdir=work", "not an absolute path", id="a relative folder"),
        pytest.param("--container-env=A=B", "names of variables", id="a value"),
    ],
)
def test_typo_fails_at_once_without_a_job(world: Site, options: str, said: str) -> None:
    before = world.cluster.slurm("squeue", "--states=all", "--noheader", "--format=%i").split()
    assert said in world.cluster.ssh(f"{STEP} {options} true", check=False)
    assert world.cluster.slurm("squeue", "--states=all", "--noheader", "--format=%i").split() == before


def test_flags_without_an_image_are_refused(world: Site) -> None:
    assert "without --container-image or --container-name" in world.cluster.ssh("srun --container-mounts=/a:/b true", check=False)
    assert "needs --container-image as well" in world.cluster.ssh("srun --container-name=box:create true", check=False)


def test_container_is_created_once_and_used_again(world: Site) -> None:
    """`create` holds for all tasks of its step, and for no second step; `auto` and `no_exec` take what is there."""
    create = f"{STEP} --container-name=box:create --overcommit --ntasks=2 sh -c 'echo made >> /mine'"
    again = "; ".join(f"srun --ntasks=1 --container-name=box:{use} cat /mine" for use in ("auto", "no_exec"))
    said = job(world, f"{create}; {create}; {again}")
    assert said[1:] == ["made"] * 4
    assert said[0].startswith("slipway: gpu-0: --container-name=box:create: the job has a container of that name")


def test_running_container_is_joined_and_not_taken_by_others(world: Site) -> None:
    """`exec` needs one that runs, and `no_exec` one that does not."""
    script = f"""
srun {ALONE} --container-name=box:exec true
srun {ALONE} --container-image={ONE} --container-name=box --container-mounts=/home/alice:/h sh -c \
  'echo kept > /mine; touch /h/began; for i in $(seq 600); do [ -e /h/go ] && break; sleep 0.1; done' &
for i in $(seq 600); do [ -e began ] && break; sleep 0.1; done
srun {ALONE} --container-name=box:exec cat /mine
srun {ALONE} --container-name=box:no_exec cat /mine
touch go
wait
srun --ntasks=1 --container-name=box:no_exec cat /mine
rm -f began go"""
    said = job(world, f"rm -f began go{script}", "--ntasks=2", "--mem=200")
    assert [line for line in said if not line.startswith("slipway: ")] == ["kept", "kept"], said
    none, taken = (line for line in said if line.startswith("slipway: "))
    assert "box:exec: no step of the job runs in a container of that name" in none
    assert "box:no_exec: another step runs in it" in taken


def test_named_containers_folder_is_gone_after_its_job(world: Site) -> None:
    job(world, f"{STEP} --container-name=box:create true")
    wait_for("an empty folder of jobs", lambda: world.cluster.inside("gpu-0", f"ls {CACHE}/{ALICE}/jobs") == "")


def test_user_whose_old_containers_pile_up_waits_for_their_removal_alone(world: Site) -> None:
    gone = f"{CACHE}/.gone"
    world.cluster.inside("gpu-0", f"kill -STOP $(pgrep -x remover); cd {gone} && seq -f {ALICE}.%g 1000 | xargs mkdir")
    try:
        said = world.refused(ONE)
        assert "is still removing the files of 1000 or more of your earlier containers" in said
        assert world.srun(ONE, "cat /etc/word", "--nodelist=gpu-0", user="bob") == "one"
    finally:
        world.cluster.inside("gpu-0", "kill -CONT $(pgrep -x remover)")
    wait_for("their removal", lambda: world.cluster.inside("gpu-0", f"ls {gone} | grep -c ^{ALICE} || true") == "0", deadline_s=60)
    assert world.srun(ONE, "cat /etc/word", "--nodelist=gpu-0") == "one"
