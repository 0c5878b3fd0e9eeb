"""The Slurm image's files for benchmarks that run its programs without Kubernetes: unpacked once for all of a run."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.support.slurm.image_root import unpack


@cache
def unpacked() -> Path:
    """Removed when this process ends. Nobody may write to the files: others read them, and versions of a root are hard links of them."""
    folder = Path(tempfile.mkdtemp(prefix="slipway-bench-image-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)  # daemons that are not root go through it
    return unpack(folder)
