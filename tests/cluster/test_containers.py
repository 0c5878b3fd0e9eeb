"""Containers of jobs on real Kubernetes: an image that the nodes pull from a registry, and MPI between the nodes. All else of containers is
in tests/slurm/test_containers.py, with registries that fail and users who try too much.
"""

import subprocess
from pathlib import Path

from tests.cluster.dev_stack import DevStack
from tests.slurm.container_site import base_layer, write_image

BUILD = """set -e
rm -rf mpi-image; mkdir -p mpi-image/image/{tmp,bin,etc}; cd mpi-image
mpicc -O2 /usr/share/slipway/examples/mpi/pi.c -o image/bin/pi
libs=/usr/lib/x86_64-linux-gnu
cp -r --parents $libs/openmpi $libs/pmix2 /usr/share/openmpi image/
find image -name '*.so*' -type f | xargs ldd image/bin/pi 2>/dev/null | awk '$3 ~ /^[/]/ {print $3} $1 ~ /^[/]lib/ {print $1}' |
  sort -u | while read -r file; do mkdir -p "image/$(dirname "$file")"; cp -L -n "$file" "image/$file"; done
mksquashfs image pi.sqsh -noappend -quiet -no-progress
rm -r image
"""
"""An image of one MPI program, with the libraries that it needs and nothing else."""


def test_nodes_pull_an_image_from_a_registry_and_run_its_program(stack: DevStack, registry: str, tmp_path: Path) -> None:
    made = write_image(tmp_path / "one", [base_layer("of the image")], env=["FROM_IMAGE=yes"])
    copy = ("skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false")
    subprocess.run([*copy, f"oci:{made}:latest", f"docker://{registry}/team/one:1"], check=True, timeout=120)
    settings = f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n'
    stack.ssh("mkdir -p .config/containers && cat >.config/containers/registries.conf", stdin=settings)
    script = "echo $SLURMD_NODENAME $FROM_IMAGE $(cat /etc/word)"
    said = stack.ssh(f"srun --nodes=2 --container-image=docker://{registry}/team/one:1 sh -c '{script}'; rm -r .config/containers")
    lines = [line.split(" ", 1) for line in said.splitlines()]
    assert [words for _, words in lines] == ["yes of the image"] * 2
    assert len({node for node, _ in lines}) == 2


def test_ranks_in_containers_on_two_nodes_find_each_other(stack: DevStack) -> None:
    stack.ssh(BUILD)
    options = "--nodes=2 --ntasks-per-node=2 --mem-per-cpu=200M --container-image=$PWD/mpi-image/pi.sqsh"
    said = stack.ssh(f"srun {options} pi; rm -r mpi-image").splitlines()
    assert "pi is 3.1415926536" in said
    ranks = {line.split(" on ")[0]: line.split(" on ")[1] for line in said if line.startswith("rank ")}
    assert sorted(ranks) == [f"rank {rank} of 4" for rank in range(4)]
    assert len(set(ranks.values())) == 2
