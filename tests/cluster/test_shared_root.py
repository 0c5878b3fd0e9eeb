"""The versioned root on the real cluster. tests/soak/test_shared_root.py switches it while a job runs."""

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.root_volume import root_image, run

SHARED = "/var/lib/slipway/dev/shared"


def test_jobs_and_logins_share_one_version_as_root_and_see_no_pod_files(stack: DevStack) -> None:
    version = root_image().rpartition(":")[2]
    look = "echo $SLIPWAY_ROOT_VERSION; ls /shared; ls -d /opt/slipway/slurm 2>&1; true"
    in_job = run(stack, look)
    assert in_job.startswith(f"{version}\n")
    assert "/opt/slipway/slurm': No such file" in in_job
    assert "No such file" in stack.ssh("ls -d /opt/slipway/slurm 2>&1 || true")
    # The same files, seen from a job and from login, in the version's own folder.
    where = "stat -c %i /usr/bin/env"
    assert run(stack, where) == stack.ssh(where).strip()


def test_file_put_into_the_root_on_one_machine_is_there_for_jobs_on_all(stack: DevStack) -> None:
    version = root_image().rpartition(":")[2]
    # As root of a login session would: through the version's own files.
    put = f"cp {SHARED}/versions/{version}/usr/bin/env {SHARED}/versions/{version}/usr/local/bin/new-tool"
    stack.run("bash", "-c", put)
    found = stack.ssh("srun -N2 --nodelist=cpu-[0-1] bash -c 'command -v new-tool'").split()
    assert found == ["/usr/local/bin/new-tool"] * 2
    stack.run("rm", f"{SHARED}/versions/{version}/usr/local/bin/new-tool")
    eventually("gone again", lambda: "no" in stack.ssh("command -v new-tool || echo no"), 60)
