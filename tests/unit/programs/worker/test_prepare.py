"""What becomes of a machine's GPUs, and where the container's processes are."""

import pytest

from programs.worker.prepare import Gpus, own_group, plan_gpus


@pytest.mark.parametrize(
    ("has_gpus", "has_devices", "has_own_dev", "gpus"),
    [
        pytest.param(True, True, False, Gpus.KEEP, id="a-set-with-gpus"),
        pytest.param(False, False, False, Gpus.KEEP, id="a-machine-without"),
        pytest.param(False, True, True, Gpus.HIDE, id="in-a-dev-of-its-own"),
        pytest.param(False, True, False, Gpus.REFUSE, id="in-the-machine-s-dev"),
    ],
)
def test_gpus_of_the_machine_are_open_to_no_job_of_a_set_without(has_gpus: bool, has_devices: bool, has_own_dev: bool, gpus: Gpus) -> None:
    assert plan_gpus(has_gpus, has_devices, has_own_dev) is gpus


@pytest.mark.parametrize(
    ("text", "group"),
    [
        pytest.param("0::/\n", "", id="cgroup-namespace"),
        pytest.param("0::/kubepods/pod1/c\n", "/kubepods/pod1/c", id="the-machine-s"),
    ],
)
def test_own_group_is_below_the_folder_of_all_groups(text: str, group: str) -> None:
    assert own_group(text) == group
