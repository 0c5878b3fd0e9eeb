"""Versions of the shared root that `up` refuses on the real cluster."""

from tests.cluster.dev_stack import DevStack
from tests.cluster.test_shared_root import image_without_a_shell, root_image, run, up


def test_version_that_runs_no_shell_is_refused_and_the_old_one_stays(restored: DevStack) -> None:
    """Quick: tests/slurm/test_root_fill.py::test_switch_and_rollback_and_a_version_without_a_shell_is_refused."""
    stack = restored
    image = root_image()
    first = image.rpartition(":")[2]
    versions = [{"name": first, "image": image}, {"name": "broken", "image": image_without_a_shell(stack)}]
    said = up(stack, {"versions": versions, "current": "broken"}, check=False)
    assert "no shell runs in version broken" in said
    assert run(stack, "echo $SLIPWAY_ROOT_VERSION") == first


def test_name_of_a_version_is_for_one_image_for_ever(restored: DevStack) -> None:
    """Quick: tests/slurm/test_root_fill.py::test_name_of_a_version_is_for_one_image."""
    stack = restored
    first = root_image().rpartition(":")[2]
    said = up(stack, {"versions": [{"name": first, "image": image_without_a_shell(stack)}]}, check=False)
    assert "A name is for one image" in said
    assert run(stack, "echo $SLIPWAY_ROOT_VERSION") == first
