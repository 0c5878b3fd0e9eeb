"""A package that a user installs in a container, with Debian's own apt and dpkg. Quick: tests/slurm/test_containers.py, without these."""

import subprocess
from pathlib import Path

from images import debian
from tests.support.cluster.dev_stack import DevStack
from tests.support.cluster.outside import repository
from tests.support.slurm.container_site import write_image

FIXTURES = (repository,)


def test_package_that_apt_installs_in_a_container_is_in_the_saved_image(
    stack: DevStack, registry: str, repository: str, tmp_path: Path
) -> None:
    root, log = tmp_path / "debian.tar", tmp_path / "log"
    debian.bootstrap(root, debian.read_mirror(log), debian.read_settings(log), log)
    made = write_image(tmp_path / "image", [root.read_bytes()])
    copy = ("skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false")
    subprocess.run([*copy, f"oci:{made}:latest", f"docker://{registry}/team/debian:1"], check=True, timeout=120)
    settings = f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n'
    stack.ssh("mkdir -p .config/containers && cat >.config/containers/registries.conf", stdin=settings)
    install = (
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin; rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*; "
        f"echo '{repository}' > /etc/apt/sources.list; apt-get update && apt-get install -y slipway-out"
    )
    flags = f"--container-image=docker://{registry}/team/debian:1 --container-remap-root --container-save=$HOME/mine.sqsh"
    try:
        stack.ssh(f'srun {flags} sh -c "{install}"')
        assert stack.ssh("srun --container-image=$HOME/mine.sqsh /usr/bin/slipway-out") == "hello\n"
    finally:
        stack.ssh("rm -rf .config/containers mine.sqsh")
