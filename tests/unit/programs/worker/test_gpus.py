"""Which differences between the GPUs of a machine and those of the config are told, and how the drivers' words are read."""

import json
from pathlib import Path
from typing import Any

import pytest

from programs.worker.gpus import (
    Gpu,
    GpuError,
    compare,
    compare_sockets,
    describe,
    is_named,
    read_amd,
    read_nvidia,
    read_sockets,
)
from programs.worker.settings import DeclaredGpus, from_json, to_json

H100 = Gpu("NVIDIA H100 80GB HBM3", 81559)
A100 = Gpu("NVIDIA A100-SXM4-80GB", 81920)
DECLARED = DeclaredGpus("nvidia", "h100", 8, 81920)


@pytest.mark.parametrize(
    ("declared", "found", "devices", "faults"),
    [
        pytest.param(DECLARED, (H100,) * 8, 8, [], id="as-declared"),
        pytest.param(DECLARED, (H100,) * 7, 7, ["7 GPUs, and the config says 8"], id="one-has-vanished"),
        pytest.param(DECLARED, (H100,) * 7, 8, ["7 GPUs, and the config says 8"], id="one-does-not-answer"),
        pytest.param(DECLARED, (), 0, ["no GPU, and the config says 8"], id="none"),
        pytest.param(DECLARED, (H100,), 1, ["1 GPU, and the config says 8"], id="one"),
        pytest.param(DECLARED, (A100,) * 9, 9, ["9 GPUs, and the config says 8"], id="too-many-and-what-they-are-is-not-said"),
        pytest.param(DECLARED, (H100,) * 8, 7, ["7 device files of GPUs, and the config says 8 GPUs"], id="device-file-is-missing"),
        pytest.param(
            DECLARED,
            (A100,) * 8,
            8,
            ['each GPU is "NVIDIA A100-SXM4-80GB", and the config says h100'],
            id="another-model-of-the-same-memory",
        ),
        pytest.param(
            DECLARED,
            (*(H100,) * 6, A100, A100),
            8,
            ['GPU 6, 7 is "NVIDIA A100-SXM4-80GB", and the config says h100'],
            id="two-of-another-model",
        ),
        pytest.param(
            DECLARED,
            (Gpu("NVIDIA H100 NVL", 95830),) * 8,
            8,
            ["each GPU has 95830 MiB of memory, and the config says 81920"],
            id="the-same-model-with-other-memory",
        ),
        pytest.param(
            DECLARED,
            (*(H100,) * 7, Gpu("NVIDIA H100 80GB HBM3", 81559, is_divided=True)),
            8,
            ["GPU 7 is in MIG mode, and the config has whole GPUs"],
            id="divided",
        ),
        pytest.param(DeclaredGpus("nvidia", "h100", 1), (Gpu("NVIDIA H100 NVL", 95830),), 1, [], id="memory-that-nobody-declared"),
        pytest.param(DECLARED, (Gpu(),) * 8, 8, [], id="driver-says-no-more-than-how-many"),
        pytest.param(DeclaredGpus("nvidia", "big", 1, driver_name="NVIDIA H100 80GB HBM3"), (H100,), 1, [], id="model-of-the-sites-own"),
        pytest.param(
            DeclaredGpus("nvidia", "big", 1, driver_name="NVIDIA H100 NVL"),
            (H100,),
            1,
            ['GPU 0 is "NVIDIA H100 80GB HBM3", and the config says "NVIDIA H100 NVL"'],
            id="another-than-the-sites-own",
        ),
    ],
)
def test_each_difference_is_told_with_both_values(declared: DeclaredGpus, found: tuple[Gpu, ...], devices: int, faults: list[str]) -> None:
    assert compare(declared, found, devices) == faults


@pytest.mark.parametrize(
    ("name", "model", "named"),
    [
        ("NVIDIA H100 80GB HBM3", "h100", True),
        ("NVIDIA H200", "h200", True),
        ("NVIDIA H200", "h20", False),
        ("NVIDIA A10G", "a10g", True),
        ("NVIDIA A10G", "a10", False),
        ("NVIDIA L40S", "l40s", True),
        ("NVIDIA L40S", "l4", False),
        ("NVIDIA A100-SXM4-40GB", "a100", True),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb", True),
        ("NVIDIA A100-SXM4-40GB", "a100-80gb", False),
        ("NVIDIA GB200", "gb200", True),
        ("NVIDIA GB200", "b200", False),
        ("Tesla V100-SXM2-16GB", "v100", True),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx1080ti", True),
        ("NVIDIA RTX A6000", "rtx_a6000", True),
        ("AMD Instinct MI300X", "mi300x", True),
        ("MI300X-O", "mi300x", True),
    ],
)
def test_model_is_found_in_the_drivers_name_by_whole_words(name: str, model: str, named: bool) -> None:
    assert is_named(name, model) is named


def test_long_list_of_differences_fits_a_drains_reason() -> None:
    found = tuple(Gpu(f"NVIDIA H100 of a very special kind, number {at}", 4000 + at) for at in range(8))
    assert len(describe(compare(DECLARED, found, 8))) <= 300


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "NVIDIA H100 80GB HBM3, 81559, Disabled\nNVIDIA H100 80GB HBM3, 81559, Enabled\n",
            (H100, Gpu("NVIDIA H100 80GB HBM3", 81559, is_divided=True)),
            id="two-and-one-divided",
        ),
        pytest.param("Tesla T4, 15360, [N/A]\n", (Gpu("Tesla T4", 15360),), id="without-mig"),
        pytest.param("NVIDIA GB10, [N/A], [N/A]\n", (Gpu("NVIDIA GB10", 0),), id="shared-memory"),
        pytest.param("No devices were found\n", (), id="none"),
    ],
)
def test_nvidias_words_are_read(text: str, found: tuple[Gpu, ...]) -> None:
    assert read_nvidia(text) == found


def test_line_that_nvidia_smi_adds_is_no_gpu() -> None:
    with pytest.raises(GpuError, match="nvidia-smi said: Unable to determine the device handle"):
        read_nvidia("Unable to determine the device handle for GPU 0000:3B:00.0\n")


def amd(size: Any, name: str = "AMD Instinct MI300X") -> dict[str, Any]:
    return {"gpu": 0, "asic": {"market_name": name}, "vram": {"type": "HBM", "size": size}}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        pytest.param([amd({"value": 196592, "unit": "MB"})], Gpu("AMD Instinct MI300X", 196592), id="list"),
        pytest.param({"gpu_data": [amd({"value": 196592, "unit": "MB"})]}, Gpu("AMD Instinct MI300X", 196592), id="object"),
        pytest.param([amd("196592 MB")], Gpu("AMD Instinct MI300X", 196592), id="size-as-text"),
        pytest.param([amd("N/A", "N/A")], Gpu("", 0), id="guest-that-is-told-nothing"),
    ],
)
def test_amds_words_are_read_in_each_of_their_forms(answer: Any, found: Gpu) -> None:
    assert read_amd(json.dumps(answer)) == (found,)


@pytest.mark.parametrize("text", ["", "[1]", '{"gpu": []}', '[{"gpu": 0}]', "null"])
def test_answer_of_another_form_is_no_reading(text: str) -> None:
    with pytest.raises(GpuError, match="amd-smi said"):
        read_amd(text)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        pytest.param('{"vendor": "nvidia", "model": "h100", "count": 8, "memoryMiB": 81920}', DECLARED, id="with-memory"),
        pytest.param('{"vendor": "amd", "model": "mi300x", "count": 1}', DeclaredGpus("amd", "mi300x", 1), id="without"),
    ],
)
def test_declaration_is_read_as_the_pod_has_it(text: str, declared: DeclaredGpus) -> None:
    assert from_json(text) == declared
    assert to_json(declared) == text


@pytest.mark.parametrize(
    ("declared", "found", "told"),
    [
        pytest.param((0, 0, 1, 1), (0, 0, 1, 1), "", id="as-declared"),
        pytest.param((0, 0, 1, 1), (0, 0, None, 1), "", id="one-not-known"),
        pytest.param((0, 0, 1, 1), (), "", id="none-known"),
        pytest.param((), (0, 0, 1, 1), "", id="none-declared"),
        pytest.param(
            (0, 0, 1, 1),
            (0, 1, 1, 1),
            "GPU 1 is beside socket 1, and gres.conf says 0; gpus.sockets should be [0, 1, 1, 1]",
            id="one-differs",
        ),
        pytest.param(
            (0, 0, 1, 1),
            (1, 1, 0, 0),
            "GPU 0 is beside socket 1, and gres.conf says 0; GPU 1 is beside socket 1, and gres.conf says 0; 2 more likewise; "
            "gpus.sockets should be [1, 1, 0, 0]",
            id="all-differ",
        ),
    ],
)
def test_gpus_beside_other_sockets_are_told_with_the_remedy(declared: tuple[int, ...], found: tuple[int | None, ...], told: str) -> None:
    assert describe(compare_sockets(DeclaredGpus("nvidia", "h100", 4, sockets=declared), found)) == told


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_sockets_are_those_of_the_device_files_whatever_the_bus_order(tmp_path: Path) -> None:
    """/dev/nvidia0 is the second device on the bus here."""
    for place, minor, cpus in (("0000:19:00.0", 1, "48-95"), ("0000:9b:00.0", 0, "0-47")):
        write(tmp_path / "proc/driver/nvidia/gpus" / place / "information", f"Model: \t\t NVIDIA H100\nDevice Minor: \t {minor}\n")
        write(tmp_path / "sys/bus/pci/devices" / place / "local_cpulist", f"{cpus}\n")
    for cpu, socket in ((0, 0), (48, 1)):
        write(tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", f"{socket}\n")
    asked = str(tmp_path / "sys"), str(tmp_path / "proc")
    assert read_sockets(DeclaredGpus("nvidia", "h100", 2), *asked) == (0, 1)
    assert read_sockets(DeclaredGpus("amd", "mi300x", 2), *asked) == ()
    assert read_sockets(DeclaredGpus("nvidia", "h100", 2), str(tmp_path / "sys"), str(tmp_path / "none")) == ()


def test_sockets_of_amds_gpus_are_found_by_their_device_files(tmp_path: Path) -> None:
    for place, minor, socket in (("0000:85:00.0", 128, 1), ("0000:05:00.0", 129, 0)):
        device = tmp_path / "bus/pci/devices" / place
        write(device / "local_cpulist", f"{socket * 8}-{socket * 8 + 7}\n")
        write(tmp_path / f"devices/system/cpu/cpu{socket * 8}/topology/physical_package_id", f"{socket}\n")
        (tmp_path / f"class/drm/renderD{minor}").mkdir(parents=True)
        (tmp_path / f"class/drm/renderD{minor}/device").symlink_to(device)
    assert read_sockets(DeclaredGpus("amd", "mi300x", 2), str(tmp_path)) == (1, 0)
