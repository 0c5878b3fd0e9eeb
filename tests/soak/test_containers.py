"""An image of 200,000 files. Quick: tests/slurm/test_containers.py, with fewer."""

from tests.support.slurm.container_cluster import Site, assert_has_all_files, world

FIXTURES = (world,)


def test_image_of_200_000_files_has_them_all(world: Site) -> None:
    assert_has_all_files(world, 200_000)
