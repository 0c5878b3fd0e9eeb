"""How the driver's words about instances of MIG are read, and which instance gets which number on its GPU."""

import os
from pathlib import Path

import pytest

from programs.worker import mig
from programs.worker.gpus import Gpu, compare
from programs.worker.mig import Instance, MigError, order, read_instances, read_major, read_minors
from programs.worker.settings import DeclaredGpus, from_json, to_json
from slurm import mig as names

LISTING = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5c89852c)
  MIG 3g.40gb     Device  0: (UUID: MIG-aa)
  MIG 1g.10gb     Device  1: (UUID: MIG-bb)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-7f0a2c41)
"""


def details(*gpus: tuple[int, list[tuple[int, int, int]]]) -> str:
    """As `nvidia-smi -q -x`: the GPU's device file, and each instance's index and ids."""
    text = ""
    for minor, instances in gpus:
        text += f"<gpu id='0'><minor_number>{minor}</minor_number><mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>"
        for index, gi, ci in instances:
            ids = f"<gpu_instance_id>{gi}</gpu_instance_id><compute_instance_id>{ci}</compute_instance_id>"
            text += f"<mig_device><index>{index}</index>{ids}</mig_device>"
        text += "</mig_devices></gpu>"
    return f"<?xml version='1.0' ?><!DOCTYPE nvidia_smi_log SYSTEM 'nvsmi_device_v12.dtd'><nvidia_smi_log>{text}</nvidia_smi_log>"


def test_instances_are_those_of_the_gpus_device_file() -> None:
    """The first GPU in nvidia-smi's order is /dev/nvidia3 here."""
    found = read_instances(LISTING, details((3, [(0, 2, 0), (1, 9, 0)]), (1, [])))
    assert found == [(Instance(3, "3g.40gb", "MIG-aa", (2, 0)), Instance(3, "1g.10gb", "MIG-bb", (9, 0))), ()]


@pytest.mark.parametrize(
    ("listing", "more", "why"),
    [
        pytest.param(LISTING, details((0, [(0, 2, 0)]), (1, [])), "lists instance 1 of GPU 0, and gives no details", id="less-details"),
        pytest.param("", details((0, [(0, 2, 0)])), "gives details of 1 instances of MIG that it does not list", id="not-listed"),
        pytest.param(LISTING, "NVIDIA-SMI has failed", "details of another form: syntax error", id="no-xml"),
        pytest.param(LISTING, details((0, [(0, 2, 0)])).replace(">2<", ">N/A<"), "gpu_instance_id is 'N/A'", id="no-number"),
    ],
)
def test_words_that_do_not_fit_are_no_reading(listing: str, more: str, why: str) -> None:
    with pytest.raises(MigError, match=why):
        read_instances(listing, more)


def test_numbers_follow_the_profiles_whatever_the_order_of_creation() -> None:
    """The same ids have the same number after a restart: running jobs have these files open."""
    made = [Instance(0, "1g.10gb", "b", (9, 0)), Instance(0, "3g.40gb", "a", (2, 0)), Instance(0, "1g.10gb", "c", (7, 0))]
    wanted = [("a", 0), ("c", 1), ("b", 2)]
    for instances in (made, made[::-1]):
        assert [(each.uuid, at) for each, at in order(instances, ("3g.40gb", "1g.10gb", "1g.10gb"))] == wanted


def test_instances_that_nobody_declared_get_no_number() -> None:
    assert order([Instance(0, "7g.80gb", "a", (0, 0)), Instance(1, "1g.10gb", "b", (7, 0))], ("1g.10gb",)) == [
        (Instance(1, "1g.10gb", "b", (7, 0)), 0)
    ]


def test_tables_of_the_kernel_are_read() -> None:
    minors = read_minors("config 1\nmonitor 2\ngpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\n")
    assert (minors["gpu0/gi7/access"], minors["gpu0/gi7/ci0/access"]) == (66, 67)
    assert read_major("Character devices:\n  1 mem\n195 nvidia\n234 nvidia-caps\n235 nvidia-caps-imex-channels\n") == 234
    with pytest.raises(MigError, match="the kernel knows no nvidia-caps"):
        read_major("195 nvidia\n235 nvidia-caps-imex-channels\n")


def test_files_are_each_instances_devices_and_outdated_ones_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made twice: somebody has divided the GPU again meanwhile, in another order. A file that is still right is not touched."""
    folder = tmp_path / "mig"
    for module in (mig, names):
        monkeypatch.setattr(module, "FOLDER", str(folder))
    for name, text in {"_DEVICES": "234 nvidia-caps\n", "_MINORS": "", "LIST": ""}.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(mig, name, str(tmp_path / name))

    def numbered(*instances: tuple[str, int]) -> dict[str, tuple[int, int]]:
        minors = "".join(f"gpu0/gi{gi}/access {10 * gi}\ngpu0/gi{gi}/ci0/access {10 * gi + 1}\n" for _, gi in instances)
        (tmp_path / "_MINORS").write_text(minors)
        mig.make_devices(
            [Instance(0, profile, f"MIG-{gi}", (gi, 0)) for profile, gi in instances], ("3g.40gb", "1g.10gb"), is_simulated=False
        )
        return {file.name: (os.major(device := file.stat().st_rdev), os.minor(device)) for file in folder.iterdir()}

    assert numbered(("1g.10gb", 7), ("3g.40gb", 1)) == {"0-0-gi": (234, 10), "0-0-ci": (234, 11), "0-1-gi": (234, 70), "0-1-ci": (234, 71)}
    assert (tmp_path / "LIST").read_text() == f"{folder}/0-0-ci MIG-1\n{folder}/0-1-ci MIG-7\n"
    kept = (folder / "0-0-gi").stat().st_ino
    assert numbered(("3g.40gb", 1)) == {"0-0-gi": (234, 10), "0-0-ci": (234, 11)}
    assert (folder / "0-0-gi").stat().st_ino == kept
    (tmp_path / "_MINORS").write_text("")
    with pytest.raises(MigError, match="the kernel has no device for gpu0/gi1/access"):
        mig.make_devices([Instance(0, "3g.40gb", "MIG-1", (1, 0))], ("3g.40gb",), is_simulated=False)


WANTED = "1 of 3g.40gb and 2 of 1g.10gb"


def divided(*profiles: str) -> Gpu:
    return Gpu("NVIDIA H100 80GB HBM3", 81559, True, tuple(Instance(0, each, each, (at, 0)) for at, each in enumerate(profiles)))


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        pytest.param(divided("1g.10gb", "3g.40gb", "1g.10gb"), [], id="in-any-order"),
        pytest.param(divided("3g.40gb"), [f"GPU 0 is divided into 1 of 3g.40gb, and the config says {WANTED}"], id="less"),
        pytest.param(divided(), [f"GPU 0 is divided into nothing, and the config says {WANTED}"], id="nothing"),
        pytest.param(Gpu("NVIDIA H100 80GB HBM3"), ["GPU 0 is not in MIG mode, and the config has instances"], id="whole"),
    ],
)
def test_gpu_that_is_divided_otherwise_differs(found: Gpu, faults: list[str]) -> None:
    declared = DeclaredGpus("nvidia", "h100", 1, mig=(("3g.40gb", 1), ("1g.10gb", 2)))
    assert from_json(to_json(declared)) == declared
    assert declared.profiles == ("3g.40gb", "1g.10gb", "1g.10gb")
    assert compare(declared, (found,), 1) == faults
