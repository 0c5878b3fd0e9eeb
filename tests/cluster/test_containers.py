"""Containers of jobs on real Kubernetes: the commands of docs/use/containers.md, and MPI between the nodes. All else of containers is
in tests/slurm/test_containers.py, with registries that fail and users who try too much.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster.dev_stack import DevStack
from tests.support.cluster.guides import follow, number, section
from tests.support.patience import patience
from tests.support.slurm.container_site import base_layer, entry, layer, write_image

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


PAGE = "docs/use/containers.md"
PYTHON = entry("bin/python3", b"#!/bin/sh\necho Python 3 of the image\n", 0o755)
APT = entry(
    "bin/apt-get",
    b"#!/bin/sh\ntest $1 != install || { printf '#!/bin/sh\\necho jq of the image\\n' >/bin/jq; /bin/busybox chmod 755 /bin/jq; }\n",
    0o755,
)
"""What stands for the Python and the package manager of a large image."""


def push(image: Path, target: str) -> str:
    """Brings an image to a registry; gives its digest."""
    digest = image.parent / f"{image.name}.digest"
    copy = ("skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", "--digestfile", str(digest))
    subprocess.run([*copy, f"oci:{image}:latest", f"docker://{target}"], check=True, timeout=120 * patience())
    return digest.read_text().removeprefix("sha256:").strip()


@pytest.fixture
def reader(stack: DevStack, registry: str, tmp_path: Path) -> Iterator[tuple[DevStack, dict[str, str]]]:
    """The stack with what docs/use/containers.md assumes: images in a registry, and their files in the home. Beside it, what words of the
    page stand for."""
    digest = push(write_image(tmp_path / "torch", [base_layer("torch"), layer([PYTHON])]), f"{registry}/team/torch:24.10")
    push(write_image(tmp_path / "debian", [base_layer("debian"), layer([APT])]), f"{registry}/debian:13")
    settings = f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n'
    stack.ssh("mkdir -p .config/containers && cat >.config/containers/registries.conf", stdin=settings)
    image = f"docker://{registry}/team/torch:24.10"
    stack.ssh(f"rm -f torch.tar; skopeo --insecure-policy copy --quiet {image} docker-archive:torch.tar:torch:24.10")
    stack.ssh(f"srun --container-image={image} --container-save=/home/alice/torch.sqsh true")
    stack.ssh("printf '#!/bin/sh\\npython3 -V\\n' >train.sh")
    yield stack, {"registry.example.com": registry, "DIGEST": digest}
    stack.ssh("rm -rf .config/containers torch.tar torch.sqsh mine.sqsh train.sh")


def test_reader_of_the_page_runs_programs_in_images(reader: tuple[DevStack, dict[str, str]]) -> None:
    stack, real = reader
    (first,), jobs = section(PAGE, "Run a program in an image")
    assert follow(stack, [first], real)[first] == "Python 3 of the image\n"
    batch, interactive = jobs
    said = follow(stack, jobs, real)
    assert stack.ssh(f"cat slurm-{number(said[batch])}.out; rm slurm-*.out") == "Python 3 of the image\n"
    assert said[interactive] == "Python 3 of the image\n"


def test_reader_of_the_page_names_images_in_every_way(reader: tuple[DevStack, dict[str, str]]) -> None:
    stack, real = reader
    ways, _ = section(PAGE, "Name an image")
    assert len(ways) == 6
    follow(stack, ways, real)


def test_reader_of_the_page_keeps_what_was_installed(reader: tuple[DevStack, dict[str, str]]) -> None:
    stack, real = reader
    (block,) = section(PAGE, "What is in a container")
    assert follow(stack, block, real)[block[-1]] == "jq of the image\n"


def test_nodes_pull_an_image_from_a_registry_and_run_its_program(stack: DevStack, registry: str, tmp_path: Path) -> None:
    made = write_image(tmp_path / "one", [base_layer("of the image")], env=["FROM_IMAGE=yes"])
    push(made, f"{registry}/team/one:1")
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
