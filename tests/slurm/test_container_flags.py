"""Every flag that people know from Pyxis, on a real two-node cluster: it does what it says, or one line says what to write instead."""

import signal
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.support.slurm.container_cluster import CACHE, ONE, Site, big, containers, rest, signal_program, signal_pulls
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE

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


HEADER = """\
echo kept > /mine
echo nodes $(scontrol show hostnames $SLURM_JOB_NODELIST)
srun --ntasks=1 sh -c 'echo step $(id -un) $(cat /etc/word) $(cat /mine)'
[ $SLURM_RESTART_COUNT ] || scontrol requeue $SLURM_JOB_ID
[ $SLURM_RESTART_COUNT ] || sleep 60
squeue --noheader --job $SLURM_JOB_ID --format='squeue %T'
"""


@pytest.mark.parametrize("options", ["", "--container-remap-root"])
def test_header_of_launch_scripts_works_with_slurms_commands(world: Site, options: str) -> None:
    """The image has none of the client's libraries, no C library at all, and no user slurm."""
    flags = f"--container-image={ONE} --container-name=it --container-mount-slurm {options}"
    submit = f"sbatch --parsable --requeue --nodelist=gpu-0 --ntasks=2 --open-mode=append --output=out.%j {flags}"
    number = world.cluster.ssh(f"{submit} <<'X'\n#!/bin/sh\n{HEADER}X")
    look = ["squeue", "--noheader", "--job", number, "--format=%T %r"]
    wait_for("its second turn", lambda: world.cluster.slurm(*look).strip() == "PENDING BeginTime", deadline_s=60)
    world.cluster.slurm("scontrol", "update", f"JobId={number}", "StartTime=now")
    world.cluster.end(number)
    said = [line for line in world.cluster.out(number).splitlines() if line.startswith(("nodes", "step", "squeue"))]
    user = "root" if "root" in options else "alice"
    assert said[-3:] == ["nodes gpu-0", f"step {user} one kept", "squeue RUNNING"]


def test_srun_and_sbatch_give_one_environment_without_the_hosts_modules(world: Site) -> None:
    host = "module() { :; }; export -f module; export BASH_ENV=/x MANPATH=/y LMOD_CMD=/z MODULEPATH=/m MINE=yes"
    batch = f"printf '#!/bin/sh\\nenv\\n' > env.sh; sbatch --wait --output=env.out --container-image={ONE} env.sh >/dev/null; cat env.out"
    both = [world.cluster.ssh(f"{host}; mkdir -p sub; cd sub; {command}").splitlines() for command in (f"{STEP} env", batch)]
    of_slurm = ("SLURM", "SRUN_", "SBATCH_", "PMI", "OMPI_", "_SLURM", "SPANK_", "ENVIRONMENT=", "HOSTNAME=", "SSH_", "_=", "SHLVL=")
    step, script = ({line for line in lines if not line.startswith(of_slurm)} for lines in both)
    assert step == script
    assert {"PWD=/work", "MINE=yes"} <= step
    assert not [line for line in step if line.startswith(("BASH_", "MANPATH", "LMOD_", "MODULEPATH", "OLDPWD"))]


def test_save_that_is_killed_for_memory_is_one_line_with_what_to_do(world: Site) -> None:
    step = f"{STEP} --container-save=./killed.sqsh dd if=/dev/urandom of=/blob bs=1M count=24 2>&1"
    number = world.cluster.begin(step, "--nodelist=gpu-0")
    wait_for("mksquashfs", lambda: signal_program("mksquashfs", "-noappend", "/killed.sqsh.", signal.SIGKILL), deadline_s=60, pause_s=0.01)
    world.cluster.end(number)
    said = world.cluster.out(number)
    assert "mksquashfs was killed, as programs are when the job's memory is used up: give the job more (--mem)" in said
    assert "killed.sqsh" not in world.cluster.ssh("ls")


MANY = 8
"""Steps that start at once under one name."""
WAIT = "for i in $(seq 1200); do [ -e /h/go ] && break; sleep 0.05; done"
"""In a container with the home at /h."""
WHERE = "echo $(readlink /proc/self/ns/mnt) $(cat /mark*)"
"""What a step sees: the container's number, and what steps have left in it."""
TWO = ("--ntasks=2", "--mem=200")
SAME = "srun --overlap --ntasks=1 --mem=0 --container-name=same --container-mounts=/home/alice:/h"


def steps_at_once(image: str) -> str:
    """A script of steps that run together in one new container, and each says what it sees when all have begun."""
    step = f"echo $i > /mark$i; echo > /h/here$i; {WAIT}; {WHERE}"
    return f"""rm -f go here*
for i in $(seq {MANY}); do i=$i {SAME} --container-image={image} sh -c '{step}' & done
for n in $(seq 1200); do [ $(ls here* 2>/dev/null | wc -l) -ge $(cat wanted) ] && break; sleep 0.05; done
touch go
wait"""


def seen(world: Site, number: str) -> list[str]:
    """What the steps of a job saw, without the lines of srun."""
    return [line for line in world.cluster.out(number).splitlines() if line.startswith("mnt:")]


def test_steps_that_start_at_once_share_one_new_container(world: Site) -> None:
    world.cluster.ssh(f"echo {MANY} > wanted")
    said = seen(world, world.cluster.batch(steps_at_once(ONE), "--nodelist=gpu-0 --ntasks=2 --mem=400", deadline_s=120))
    assert said == [f"{said[0].split()[0]} {' '.join(map(str, range(1, MANY + 1)))}"] * MANY


def test_step_killed_during_its_pull_leaves_one_container_to_the_others(world: Site) -> None:
    """The others wait for the lock meanwhile; one of them pulls again."""
    name = big(world, "handed-over")
    world.cluster.ssh(f"echo {MANY - 1} > wanted")
    number = world.cluster.begin(steps_at_once(name), "--nodelist=gpu-0 --ntasks=2 --mem=400")
    wait_for("a pull", lambda: signal_pulls(name, signal.SIGSTOP), deadline_s=60, pause_s=0.005)
    steps = ["scontrol", "--oneliner", "show", "steps", number]
    wait_for("all steps", lambda: world.cluster.slurm(*steps).count(f"StepId={number}.") >= MANY, deadline_s=60)
    world.cluster.slurm("scancel", f"{number}.{signal_pulls(name, signal.SIGSTOP)}")
    world.cluster.end(number, deadline_s=120)
    said = seen(world, number)
    assert len(said) == MANY - 1
    assert len(set(said)) == 1, said


BEFORE_EXEC = f"""#!/bin/sh
echo first > /mark
readlink /proc/self/ns/mnt > /h/here
{WAIT}
"""
UNREADABLE = (
    f"busybox cp /bin/busybox /sh; busybox chmod 111 /sh; echo first > /mark; readlink /proc/self/ns/mnt > /h/here; exec /sh -c '{WAIT}'"
)
READABLE = f"echo first > /mark; readlink /proc/self/ns/mnt > /h/here; {WAIT}"


def beside(world: Site, options: str, program: str, meanwhile: str) -> str:
    """The script of a job with a step in a container, beside which other commands run."""
    prolog = world.cluster.machine.folder / "volume-home/alice/first.sh"
    prolog.write_text(BEFORE_EXEC)
    prolog.chmod(0o755)
    return f"""rm -f go here
{SAME} --container-image={ONE} {options} sh -c {quote(program)} &
while [ ! -s here ] && kill -0 $!; do sleep 0.05; done
cat here
{meanwhile}
touch go
wait
{SAME} sh -c '{WHERE}'
rm -f go here"""


@pytest.mark.parametrize(
    ("options", "program", "before"),
    [
        pytest.param("--task-prolog=/h/first.sh", "true", "", id="that has not begun its program"),
        pytest.param("", UNREADABLE, "", id="whose program cannot be read"),
        pytest.param("", READABLE, f"{SAME} true", id="that has made it and others have left"),
    ],
)
def test_step_joins_a_step(world: Site, options: str, program: str, before: str) -> None:
    here, joined, after = job(world, beside(world, options, program, f"{before}\n{SAME} sh -c '{WHERE}'"), *TWO)
    assert joined == f"{here} first"
    assert after.split()[1:] == ["first"]


def test_step_joins_a_step_whose_slurmd_has_started_again(world: Site) -> None:
    """As it does when its files change; the step's slurmstepd stays."""
    script = beside(world, "", READABLE, f"until [ -e turn ]; do sleep 0.05; done; rm turn\n{SAME} sh -c '{WHERE}'")
    number = world.cluster.begin(script, "--nodelist=gpu-0", *TWO)
    wait_for("the first step", lambda: "here" in world.cluster.ssh("ls").split(), deadline_s=60)
    worker = world.cluster.worker("gpu-0")
    before = worker.log.count("slurmd started")
    world.cluster.slurm("scontrol", "reconfigure")
    wait_for("slurmd again", lambda: worker.log.count("slurmd started") > before)
    world.cluster.ssh("touch turn")
    world.cluster.end(number)
    here, joined, _ = seen(world, number)
    assert joined == f"{here} first"


def test_task_killed_before_its_program_leaves_the_files_to_the_next(world: Site) -> None:
    kill = "kill -9 $(ps -o ppid= -C first.sh); wait"
    said = job(world, beside(world, "--task-prolog=/h/first.sh", "true", f"{kill}\n{SAME} sh -c '{WHERE}'"), *TWO)
    assert [line.split()[1:] for line in said if line.startswith("mnt:")] == [[], ["first"], ["first"]], said


def test_container_that_cannot_be_joined_is_not_made_again(world: Site) -> None:
    said = job(world, beside(world, "", READABLE, f"pkill -9 slipway-holder\n{SAME} sh -c '{WHERE}'"), *TWO)
    assert len([line for line in said if "the container same runs, but its process slipway-holder was killed" in line]) == 1, said
    assert [line.split()[1:] for line in said if line.startswith("mnt:")] == [[], ["first"]]


def test_steps_that_come_as_others_go_lose_nothing(world: Site) -> None:
    lane = f"for i in $(seq 5); do {SAME} sh -c 'echo x >> /log'; done"
    script = f"{SAME} --container-image={ONE} true\n{lane} & {lane} & {lane} & wait\n{SAME} sh -c 'echo $(cat /log)'"
    assert job(world, script, *TWO) == [" ".join("x" * 15)]


def test_requeued_job_has_a_new_container(world: Site) -> None:
    script = f"{SAME} --container-image={ONE} sh -c 'cat /mark 2>/dev/null || echo none; echo first > /mark'"
    again = f"{script}; [ $SLURM_RESTART_COUNT ] || {{ scontrol requeue $SLURM_JOB_ID; sleep 60; }}"
    number = world.cluster.begin(f"exec >> requeued; {again}", "--nodelist=gpu-0 --requeue")
    wait_for(
        "its second turn",
        lambda: world.cluster.slurm("squeue", "--noheader", "--job", number, "--format=%T %r").strip() == "PENDING BeginTime",
    )
    world.cluster.slurm("scontrol", "update", f"JobId={number}", "StartTime=now")
    world.cluster.end(number)
    assert world.cluster.ssh("cat requeued; rm requeued").split() == ["none", "none"]


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
