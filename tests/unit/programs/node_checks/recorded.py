"""What tools of GPU vendors print, as recorded from public reports; shortened to what the checks read."""

from typing import Any

SMI = {
    "index": "0",
    "performance": "P0",
    "ecc": "0",
    "retired": "[N/A]",
    "remap_failed": "No",
    "driver": "550.90.07",
    "remap_pending": "No",
    "temperature": "61",
    "thermal": "Not Active",
    "brake": "Not Active",
    "width": "16",
    "width_max": "16",
    "generation": "5",
    "generation_max": "5",
    "utilization": "97",
    "memory": "70000",
    "fabric": "Completed",
    "fabric_status": "Success",
}
"""One GPU, in the order in which programs/node_checks/gpu.py asks nvidia-smi."""

NVLINKS = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
\t Link 2: 26.562 GB/s
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555556)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
\t Link 2: 26.562 GB/s
"""
"""`nvidia-smi nvlink --status`."""


def _amd(number: int, uncorrectable: int, hotspot: Any, throttle: str) -> dict[str, Any]:
    return {
        "gpu": number,
        "power": {"socket_power": {"value": 127, "unit": "W"}, "throttle_status": "THROTTLED"},
        "temperature": {"edge": "N/A", "hotspot": hotspot, "mem": {"value": 70, "unit": "C"}},
        "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 0},
        "ecc": {"total_correctable_count": 0, "total_uncorrectable_count": uncorrectable, "total_deferred_count": 0},
        "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}},
        "throttle": {"ppt_violation_status": "ACTIVE", "socket_thermal_violation_status": throttle, "prochot_violation_status": "N/A"},
    }


AMD_METRICS: dict[str, Any] = {
    "gpu_data": [
        _amd(0, 0, {"value": 63, "unit": "C"}, "NOT ACTIVE"),
        _amd(1, 2, "N/A", "N/A"),
        _amd(2, 0, {"value": 104, "unit": "C"}, "ACTIVE"),
    ]
}
"""`amd-smi metric --json`, of which `throttle_status` is THROTTLED also on an idle GPU."""
AMD_PAGES = [
    {"gpu": 0, "retired": "No bad pages found.", "pending": "No bad pages found.", "un_res": "No bad pages found."},
    {"gpu": 1, "retired": [], "pending": [{"page_address": "0x4000", "page_size": "0x1000", "status": "PENDING"}], "un_res": []},
]
"""`amd-smi bad-pages --json`."""
