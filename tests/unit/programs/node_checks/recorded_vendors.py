"""What vendors' programs printed on real machines, cut to the lines that matter. Sources stand beside each text."""

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
