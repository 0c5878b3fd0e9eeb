"""What vendors' programs printed on real machines, cut to the lines that matter. Sources stand beside each text."""

from typing import Any

NCCL_HEAD = """\
# nThread 1 nGpus {gpus} minBytes {size} maxBytes {size} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
"""
NCCL_COLUMNS = """\
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
NCCL_ROWS = """\
   268435456      67108864     float     sum      -1   2360.9  113.70  213.19      0   2359.9  113.75  213.28      0
  1073741824     268435456     float     sum      -1   6759.0  158.86  297.86      0   6737.4  159.37  298.82      0
  8589934592    2147483648     float     sum      -1    47535  180.71  338.82      0    47743  179.92  337.35      0
"""
"""Two machines of 8 H100 with 1,600 Gbit/s each. Source: github.com/lessizzmore/create-a3mega-ztan-fork, ztan-NCCL-test-result."""
NCCL_END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 70.742 \n"
NCCL_OLD_ROWS = """\
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum   8142.6  131.87  230.77  2e-07   8141.2  131.89  230.81  2e-07
"""
"""One p4d.24xlarge with 8 A100, nccl-tests of 2022, without the column root. Source: github.com/NVIDIA/nccl/issues/527."""


def nccl_ranks(gpus: int, per_node: int = 8, name: str = "NVIDIA H100 80GB HBM3") -> str:
    return "".join(
        f"#  Rank {at:2} Group  0 Pid {6899 + at:6} on node-{at // per_node} device {at % per_node:2} [0000:{at:02x}:00] {name}\n"
        for at in range(gpus)
    )


def nccl(gpus: int = 8, rows: str = NCCL_COLUMNS + NCCL_ROWS, end: str = NCCL_END) -> str:
    return NCCL_HEAD.format(gpus=gpus, size=8589934592) + nccl_ranks(gpus) + rows + end


NCCL_WRONG = nccl(
    rows=NCCL_COLUMNS + NCCL_ROWS.replace("338.82      0", "338.82   4096"),
    end="# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 70.742 \n",
)
"""nccl-tests count wrong values of each row, and at the end the rows that have any. Source: src/common.cu there."""
NCCL_ECC = """\
node-0: Test CUDA failure common.cu:601 'uncorrectable ECC error encountered'
 .. node-0 pid 6899: Test failure common.cu:447
"""
NCCL_REFUSED = "node-0: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n"
DCGM_3_SKIPPED: dict[str, Any] = {
    "DCGM GPU Diagnostic": {
        "test_categories": [
            {"category": "Integration", "tests": [{"name": "PCIe", "results": [{"gpu_id": "0", "status": "Skip"}]}]},
            {
                "category": "Hardware",
                "tests": [
                    {"name": "GPU Memory", "results": [{"gpu_id": "0", "status": "Skip"}]},
                    {"name": "Diagnostic", "results": [{"gpu_id": "0", "status": "Skip"}]},
                ],
            },
        ]
    }
}
"""dcgmi diag -r 3 -j of DCGM 3.3 with a T400, cut. Source: github.com/NVIDIA/DCGM/issues/139."""
DCGM_4_PERSISTENCE: dict[str, Any] = {
    "DCGM Diagnostic": {
        "test_categories": [
            {
                "category": "Deployment",
                "tests": [
                    {
                        "name": "software",
                        "results": [
                            {
                                "entity_group": "GPU",
                                "entity_group_id": 1,
                                "entity_id": 0,
                                "status": "Fail",
                                "warnings": [
                                    {
                                        "error_category": 8,
                                        "error_id": 29,
                                        "error_severity": 5,
                                        "warning": "Persistence Mode: Persistence mode for GPU 0 is disabled.",
                                    }
                                ],
                            }
                        ],
                        "test_summary": {
                            "info": ["Error getting the SRAM Threshold Count for GPU 0. SRAM Threshold checking was skipped."],
                            "status": "Fail",
                        },
                    }
                ],
            }
        ]
    },
    "entity_groups": [{"entities": [{"device_id": "2e12", "entity_id": 0}], "entity_group": "GPU", "entity_group_id": 1}],
    "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
}
"""dcgmi diag -r 1 -j of DCGM 4.2.3 with a GB10, which ended with 226; texts shortened. The shape is that of
github.com/NVIDIA/DCGM/issues/215, which shows one that passed."""
DCGM_4_CODE = 226
DCGM_UNREACHABLE = "Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host engine. Host engine connection invalid/disconnected.\n"  # noqa: E501

BURN_HEAD = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-555555555555)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-666666666666)
Using compare file: compare.ptx
Burning for 60 seconds.
Initialized device 0 with 40536 MB of memory (39000 MB available, using 35100 MB of it), using FLOATS
"""
"""gpu_burn's texts. Source: gpu_burn-drv.cpp of github.com/wilicc/gpu-burn, with its printf formats."""


def burn(*gpus: tuple[int, int, str], reports: int = 3) -> str:
    """Two or more reports on one line of a terminal, and the table. A GPU is its Gflop/s, errors of a report, and its verdict."""
    lines = ""
    for at in range(reports):
        done = " - ".join(f"{1000 * at if speed >= 0 else -1} ({max(0, speed) if at else 0} Gflop/s) " for speed, _, _ in gpus)
        notes = (" (DIED!)" if speed < 0 else " (WARNING!)" if errors else "" for speed, errors, _ in gpus)
        errors = "- ".join(f"{errors} {note}" for (_, errors, _), note in zip(gpus, notes, strict=True))
        lines += f"\r{at * 50:.1f}%  proc'd: {done}  errors: {errors}  temps: {'- '.join(['61 C '] * len(gpus))}"
    table = "".join(f"\tGPU {at}: {verdict}\n" for at, (_, _, verdict) in enumerate(gpus))
    end = "\n\tSummary at:   Mon Oct 31 10:27:50 UTC 2022\n\n\nKilling processes with SIGTERM (soft kill)\ndone\n"
    return f"{BURN_HEAD}{lines}{end}\nTested {len(gpus)} GPUs:\n{table}"


BURN_NO_CUDA = 'Couldn\'t init CUDA: Error in "init": CUDA_ERROR_NO_DEVICE\nNo clients are alive!  Aborting\n'
BURN_NO_ROOM = "Couldn't init a GPU test: Low mem for result. aborting.\n\n\nNo clients are alive!  Aborting\n"

IB_NO_DEVICE = " Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"
"""Debian's perftest 4.5 on a machine without a card, which ends with 1: seen."""
IB_LOST = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
IB_NO_MEMORY = "Couldn't allocate MR\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n"


def ib(average: str, peak: str = "0.00") -> str:
    """What a client prints with --report_gbits and -D. Source: github.com/linux-rdma/perftest/issues/132 and 273."""
    line = "-" * 87
    return (
        f"{line}\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
        " Number of qps   : 2\t\tTransport type : IB\n Mtu             : 4096[B]\n Link type       : IB\n"
        f"{line}\n local address: LID 0x02 QPN 0x0032 PSN 0x5f2841 RKey 0x002440 VAddr 0x007f2e5f64b000\n"
        f"{line}\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        f" 1048576    94208            {peak}               {average}   \t\t   0.047091\n{line}\n"
    )
