"""Every file that the C of the shared root reads, and every name that it accepts, fuzzed for five minutes, with other seeds at each run."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

from tests.support.root.programs import TARGETS, build, fuzz

SECONDS = 300.0


def test_no_input_breaks_a_target_in_five_minutes_each(tmp_path: Path) -> None:
    """As many at once as there are processors."""
    folder, seed = build(tmp_path), int(time.time())

    def search(target: str) -> CompletedProcess[str]:
        return fuzz(folder, target, SECONDS, seed)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        done = list(threads.map(search, TARGETS))
    print(*(each.stdout for each in done), sep="")
    assert [each.stderr for each in done if each.returncode != 0 or each.stderr] == []
    assert len(done) == len(TARGETS)
