"""Packages of the stack file, from an archive beside the machine."""

from tests.support.cluster.dev_stack import DevStack
from tests.support.cluster.outside import repository

FIXTURES = (repository,)


def test_packages_of_the_stack_file_are_installed_and_unknown_ones_named(stack: DevStack, repository: str) -> None:
    """Quick: tests/slurm/test_root_packages.py installs them with the real programs; tests/cluster/test_outside.py one by hand."""
    stack.ssh(f"echo '{repository}' | sudo tee /etc/apt/sources.list.d/out.list; sudo mv /etc/apt/sources.list /etc/apt/sources.list.off")
    try:
        refused = stack.slipway("up", "--config", 'cluster.storage.root={"packages":["slipway-out","slipway-none"]}', check=False)
        assert refused.returncode
        assert "no archive of the version has package slipway-none. Correct storage.root.packages" in refused.stdout + refused.stderr
        stack.slipway("up", "--config", 'cluster.storage.root={"packages":["slipway-out"]}')
        assert stack.ssh("srun slipway-out") == "hello\n"
    finally:
        stack.ssh("sudo rm /etc/apt/sources.list.d/out.list; sudo mv /etc/apt/sources.list.off /etc/apt/sources.list; true")
        stack.slipway("up")
        stack.ssh("sudo apt-get remove -y slipway-out")
