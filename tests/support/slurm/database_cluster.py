"""A Slurm cluster with accounting and one worker, its backups, restores and keys as the components have them: without Kubernetes."""

import base64
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.pods import program_command
from names import variables
from tests.support.patience import seconds
from tests.support.slurm.image_cluster import ImageCluster, is_worker, program_mount
from tests.support.slurm.image_pods import Container, Machine, wait_for
from tests.support.slurm.image_stack import ALICE, MYSQL, SLURM, STACK

NAMES = {
    "t-mariadb-0": ["t-mariadb"],
    "t-slurmdbd-0": ["t-slurmdbd"],
    "t-slurmctld-0": ["t-slurmctld"],
    "t-backup": [],
    "t-other": [],
    "gpu-0": [],
}
STACK_OF_ONE: dict[str, Any] = {
    **STACK,
    "nodeSets": [{**STACK["nodeSets"][0], "size": 1}],
    "accounting": {
        "purge": {"jobs": "48hours", "steps": "48hours"},
        "archive": {"records": ["jobs", "steps"], "volume": {"hostPath": "/srv/archive"}},
    },
}
FOLDERS = "/backup/t/database:403 /backup/t/state:64030"
ARCHIVE_FOLDERS = "/archive/t:64030"
DATABASE_MOUNTS = {**program_mount("backup"), **program_mount("database")}
UNTIL_TOLD = "srun bash -c 'trap \"exit 0\" USR1; while true; do sleep 0.1; done'"
"""A job that runs until its step, called bash, gets the signal USR1."""


class DatabaseCluster(ImageCluster):
    """The cluster, with the words that its tests use."""

    first_munge_key: bytes = secrets.token_bytes(1024)
    key_latest_s = 15
    """munged's patience with a slurmctld that has another key already; longer than kubelets have for a key."""
    keep = 3
    state_interval_s = 60

    @property
    def backups(self) -> Path:
        """The cluster's folder on the backup volume, as the node sees it."""
        return self.machine.folder / "volume-backup" / "t"

    def made(self, kind: str) -> list[str]:
        """Files of finished backups, the oldest first; kind is database or state."""
        return sorted(each.name for each in (self.backups / kind).glob("2*"))

    @property
    def archived(self) -> list[Path]:
        """The files that slurmdbd wrote what it purged to."""
        return sorted((self.machine.folder / "volume-archive" / "t").iterdir())

    def munge_key(self, pod: str) -> tuple[Path, bool]:
        """Each pod has a copy of the Secret of its own, as each kubelet brings a change at its own time."""
        if not (self.machine.folder / f"volume-munge-{pod}").exists():
            self.new_munge_key(self.first_munge_key, pod)
        return self.path(f"munge-{pod}")

    def munged(self, pod: str, origin: str = "", more: Mapping[str, str] | None = None) -> None:
        super().munged(pod, origin, {variables.KEY_LATEST_S: str(self.key_latest_s), **(more or {})})

    def slurmd(self, node: str, drain_grace_s: int = 600, more: Mapping[str, str] | None = None) -> Container:
        return super().slurmd(node, drain_grace_s, {variables.KEY_LATEST_S: str(self.key_latest_s), **(more or {})})

    def munge_log(self, pod: str) -> str:
        """What munged's script said in this pod."""
        return self.containers[f"{pod}/slurmd" if is_worker(pod) else f"{pod}/munged"].log

    def new_munge_key(self, key: bytes, *pods: str) -> None:
        """The kubelets of these pods bring a key."""
        for pod in pods:
            self.volume(f"munge-{pod}", {"munge.key": key}, 0o400 if is_worker(pod) else 0o444)

    def decide(self, restore_from: str) -> None:
        """Writes what backup.restoreFrom says, as a change of the ConfigMap arrives."""
        self.volume("restore", {"from": restore_from})

    def once(
        self, pod: str, name: str, script: str | list[str], mounts: Mapping[str, tuple[Path, bool]], env: Mapping[str, str], user: int
    ) -> Container:
        """Starts a container that ends by itself."""
        capabilities = () if user else ("CHOWN", "DAC_OVERRIDE", "FOWNER")
        return self._start(pod, name, script, mounts, env, user=user, read_only=True, capabilities=capabilities)

    def finish(self, container: Container, timeout_s: float = 120) -> tuple[int, str]:
        """Waits for the end of such a container; gives its code and all that it said."""
        container.ended(timeout_s)
        return container.stop(), container.log

    def folders(self) -> tuple[int, str]:
        """The init container that makes the folders of backups."""
        mounts = {"/backup": self.path("backup", read_only=False)}
        return self.finish(self.once("t-backup", "folders", "own-folders.sh", mounts, {"SLIPWAY_FOLDERS": FOLDERS}, 0))

    def archive_folders(self) -> tuple[int, str]:
        """The init container of slurmdbd's pod that makes the folder of archives."""
        mounts = {"/archive": self.path("archive", read_only=False)}
        return self.finish(self.once("t-slurmdbd-0", "folders", "own-folders.sh", mounts, {"SLIPWAY_FOLDERS": ARCHIVE_FOLDERS}, 0))

    def slurmdbd(self, more: Mapping[str, tuple[Path, bool]] | None = None) -> Container:
        """The accounting daemon, with the volume of its archives."""
        return super().slurmdbd({"/archive": self.path("archive", read_only=False), **(more or {})})

    def backup(self, pod: str = "t-backup", **env: str) -> Container:
        """The Job of the database's backup, started."""
        mounts = {
            "/backup": self.path("backup", read_only=False),
            "/etc/slipway/mariadb": self.path("password-mysql"),
            "/tmp": (self.empty(f"{pod}-tmp", MYSQL), False),
            **DATABASE_MOUNTS,
        }
        if "SLIPWAY_MARIADB_TLS" in env:
            mounts["/etc/slipway/mariadb-ca"] = self.path("ca")
        variables = {"SLIPWAY_MARIADB_HOST": "t-mariadb", "SLIPWAY_BACKUP_KEEP": str(self.keep), **env}
        return self.once(pod, "backup", program_command("backup", module="database_backup"), mounts, variables, MYSQL)

    def database_restore(self, **env: str) -> Container:
        """The init container of MariaDB's pod, started; with SLIPWAY_MARIADB_HOST that of slurmdbd's."""
        pod = "t-mariadb-0"
        mounts = {
            "/backup": self.path("backup"),
            "/etc/slipway/restore": self.path("restore"),
            "/etc/slipway/mariadb": self.path("password-mysql"),
            "/var/lib/mysql": (self.empty("mysql", MYSQL), False),
            "/run/mysqld": (self.empty(f"{pod}-run", MYSQL), False),
            "/tmp": (self.empty(f"{pod}-tmp", MYSQL), False),
            **DATABASE_MOUNTS,
        }
        if "SLIPWAY_MARIADB_TLS" in env:
            mounts["/etc/slipway/mariadb-ca"] = self.path("ca")
        command = program_command("backup", module="database_restore")
        return self._start(pod, "restore", command, mounts, env, user=MYSQL, fs_group=MYSQL, read_only=True)

    def state_backup(self) -> Container:
        """The sidecar of slurmctld."""
        mounts = {
            "/backup": self.path("backup", read_only=False),
            "/var/spool": (self.empty("state", SLURM), True),
            **program_mount("backup"),
        }
        env = {"SLIPWAY_STATE_BACKUP_S": str(self.state_interval_s), "SLIPWAY_BACKUP_KEEP": str(self.keep)}
        command = program_command("backup", module="state_backup")
        return self._start("t-slurmctld-0", "state-backup", command, mounts, env, user=SLURM, fs_group=SLURM, read_only=True)

    def state_restore(self) -> Container:
        """The init container of slurmctld's pod."""
        mounts = {
            "/backup": self.path("backup"),
            "/etc/slipway/restore": self.path("restore"),
            "/var/spool": (self.empty("state", SLURM), False),
            **program_mount("backup"),
        }
        command = program_command("backup", module="state_restore")
        return self._start("t-slurmctld-0", "restore", command, mounts, user=SLURM, fs_group=SLURM, read_only=True)

    def submit(self, script: str, *options: str) -> str:
        """Submits a job as alice; gives its number."""
        return self.slurm("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options, "--wrap", script, user=ALICE)

    def state(self, job: str) -> str:
        """State of a job, from slurmctld."""
        return self.slurm("squeue", "--noheader", "--states", "all", "--job", job, "--format", "%T", check=False)

    def tell(self, job: str) -> None:
        """Ends a job of `UNTIL_TOLD`: sends the signal until it has ended, as slurmctld may lose one that it gets while it reconfigures."""

        def has_ended() -> bool:
            if (state := self.state(job)) == "RUNNING":
                self.slurm("scancel", "--signal=USR1", job, check=False)
            return state == "COMPLETED"

        wait_for("the job's end", has_ended, deadline_s=60, pause_s=1)

    def accounted(self, job: str) -> str:
        """State of a job, from the database."""
        return self.slurm("sacct", "--noheader", "--allocations", "--parsable2", "--jobs", job, "--format", "state")

    def accounted_steps(self, job: str) -> list[str]:
        """The job and its steps with their states, from the database."""
        return self.slurm("sacct", "--noheader", "--parsable2", "--jobs", job, "--format", "jobid,state").splitlines()

    def ready(self) -> bool:
        """True when the worker is idle and nothing waits."""
        return self.slurm("sinfo", "--noheader", "--nodes", "gpu-0", "--format", "%T") == "idle" and not self.slurm("squeue", "--noheader")

    def make_idle(self) -> None:
        """Each test starts without a job."""
        self.slurm("scancel", "--user=alice", check=False)  # what a failed test left
        wait_for("an idle worker", self.ready, deadline_s=90)

    def run_job(self) -> str:
        """A job from its submission to its record in the database."""
        job = self.submit("true", "--wait")
        wait_for("its record", lambda: self.accounted(job) == "COMPLETED", deadline_s=60)
        return job

    def stop(self, *names: str, signal: str = "TERM") -> None:
        """Ends containers, called pod/container."""
        for name in names:
            self.containers.pop(name).stop(signal)

    def new_password(self) -> None:
        """Another generation of the database's password, in the Secret."""
        password = secrets.token_hex(12)
        self.volume("password-mysql", {"password": password}, 0o440, MYSQL)
        self.volume("password-slurm", {"password": password}, 0o440, SLURM)

    def new_jwt_key(self) -> None:
        """Another generation of the key that signs tokens, in the Secret."""
        self.volume("jwt", {"jwt_hs256.key": base64.b64encode(secrets.token_bytes(32))}, 0o440, SLURM)

    def token(self) -> str:
        """A token for alice, by slurmctld's present key."""
        return self.slurm("scontrol", "token", "username=alice", "lifespan=600").removeprefix("SLURM_JWT=")

    def with_token(self, token: str) -> bool:
        """True when slurmctld takes the token."""
        env = {"SLURM_CONF": "/etc/slurm/slurm.conf", "SLURM_JWT": token}
        said = self.containers["t-slurmctld-0/reconfigure"].run("squeue", "--noheader", "--format", "ok", user=ALICE, check=False, env=env)
        return "error" not in said


@contextmanager
def running(folder: Path, prefix: str, image: Path) -> Generator[DatabaseCluster]:
    """The cluster, ready; and away again."""
    machine = Machine(folder, image, prefix)
    machine.close()  # what a killed run left
    folder.mkdir(mode=0o755)
    commands_s = seconds(4)  # what a test does while pods have different keys
    cluster = DatabaseCluster(machine, stack=STACK_OF_ONE, names=NAMES, key_spread_s=8 + commands_s)
    cluster.key_latest_s = cluster.key_spread_s + 3
    try:
        for volume in ("backup", "archive"):
            machine.folder.joinpath(f"volume-{volume}").mkdir(mode=0o755)
        cluster.prepare()
        cluster.decide("")
        for pod in ("t-slurmdbd-0", "t-slurmctld-0", "gpu-0"):
            cluster.munged(pod)
        assert cluster.folders()[0] == 0
        assert cluster.archive_folders()[0] == 0
        for start in (cluster.mariadb, cluster.slurmdbd, cluster.slurmctld, cluster.reconfigure):
            start()
        cluster.slurmd("gpu-0")
        wait_for("an idle worker", cluster.ready, deadline_s=120)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()
