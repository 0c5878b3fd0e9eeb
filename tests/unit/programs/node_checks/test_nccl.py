"""The check of the ways between GPUs: what nccl-tests print, what that says of a node, and of a job over several."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks import nccl
from programs.node_checks.kinds import KINDS
from programs.node_checks.measured import Measured, judge, read_measured
from programs.node_checks.vendor import Ended
from slurm.check_results import FAILED, PASSED, UNKNOWN
from tests.unit.programs.node_checks import recorded_vendors as recorded
from tests.unit.programs.node_checks.vendors import RECORD, answer, has_ended, run_check, stand_in

NODE: dict[str, Any] = {**KINDS["nccl"].limits, "gpus": 8, "command": []}
NO_NUMBER = recorded.nccl(rows=recorded.NCCL_ROWS.replace("338.82", "nan"))
PAIR: dict[str, Any] = {**NODE, "ranks": 2, "nodes": ["node-0", "node-1"]}


@pytest.mark.parametrize(
    ("text", "table"),
    [
        pytest.param(recorded.nccl(), nccl.Table(8589934592, 338.82, 337.35, 70.742, 0, 8), id="largest-message-counts"),
        pytest.param(recorded.NCCL_WRONG, nccl.Table(8589934592, 338.82, 337.35, 70.742, 1, 8), id="wrong-values"),
        pytest.param(recorded.nccl(rows=recorded.NCCL_OLD_ROWS), nccl.Table(1073741824, 230.77, 230.81, 70.742, 0, 8), id="without-root"),
        pytest.param(recorded.nccl().replace("#", " "), nccl.Table(8589934592, 338.82, 337.35, 70.742, 0, 8), id="printed-without-hashes"),
        pytest.param(recorded.nccl(end=""), None, id="cut"),
        pytest.param(recorded.nccl(rows=recorded.NCCL_COLUMNS), None, id="no-row"),
        pytest.param(NO_NUMBER, nccl.Table(1073741824, 297.86, 298.82, 70.742, 0, 8), id="row-of-no-number"),
        pytest.param(recorded.NCCL_ECC, None, id="crash"),
        pytest.param("", None, id="silent"),
    ],
)  # fmt: skip
def test_table_is_read(text: str, table: nccl.Table | None) -> None:
    assert nccl.read(text) == table


@pytest.mark.parametrize(
    ("ended", "least", "result", "part"),
    [
        pytest.param(Ended(0, recorded.nccl(), ""), 337, "passed", "338.82 GB/s out of place, 337.35 in place", id="as-fast-as-wanted"),
        pytest.param(Ended(0, recorded.nccl(), ""), 338, "failed", "338 wanted", id="one-way-is-slow"),
        pytest.param(Ended(0, recorded.nccl(), ""), 0, "passed", "70.742 on average", id="no-limit"),
        pytest.param(Ended(1, recorded.NCCL_WRONG, ""), 0, "failed", "1 wrong values", id="wrong-values-without-a-limit"),
        pytest.param(Ended(0, recorded.nccl(gpus=7), ""), 0, "unknown", "used 7 GPUs, 8 expected", id="other-gpus"),
        pytest.param(Ended(3, recorded.NCCL_ECC, ""), 0, "failed", "uncorrectable ECC error", id="broken-memory"),
        pytest.param(Ended(3, "", recorded.NCCL_REFUSED), 0, "unknown", "ended with 3: node-0: Test NCCL failure", id="error-of-nccl"),
        pytest.param(Ended(-11, "", ""), 0, "unknown", "killed by signal 11, and printed nothing", id="crashed"),
        pytest.param(Ended(0, "", ""), 0, "unknown", "printed nothing", id="silent"),
    ],
)
def test_node_is_judged(ended: Ended, least: int, result: str, part: str) -> None:
    said, found = nccl.judge(ended, 8, {**NODE, "minBusBandwidthGBs": least})
    assert said == result
    assert part in found


@given(st.one_of(st.text(), st.lists(st.sampled_from(recorded.nccl().splitlines()) | st.text()).map("\n".join)), st.integers(0, 3))
def test_no_text_is_an_error_and_only_a_whole_table_passes(text: str, code: int) -> None:
    table = nccl.read(text)
    said, _ = nccl.judge(Ended(code, text, ""), 8, {**NODE, "minBusBandwidthGBs": 0})
    assert said in ("passed", "failed", "unknown")
    assert said != "passed" or (table is not None and table.ranks == 8 and not table.wrong)


@given(st.integers(0, len(recorded.nccl()) - len(" \n") - 1))
def test_cut_output_never_passes(length: int) -> None:
    # Cut in the middle of its last number, the average is another one, and nothing is judged by that.
    end = recorded.nccl().index("# Avg bus bandwidth    : ") + len("# Avg bus bandwidth    : ")
    said, _ = nccl.judge(Ended(0, recorded.nccl()[: min(length, end)], ""), 8, {**NODE, "minBusBandwidthGBs": 0})
    assert said == "unknown"


@pytest.mark.parametrize(
    ("output", "code", "settings", "said"),
    [
        pytest.param(recorded.nccl(), 0, {"minBusBandwidthGBs": 300}, "passed", id="passed"),
        pytest.param(recorded.nccl(), 0, {"minBusBandwidthGBs": 400}, "failed", id="slow"),
        pytest.param(recorded.NCCL_WRONG, 1, {}, "failed", id="wrong"),
        pytest.param(recorded.NCCL_REFUSED, 3, {}, "unknown", id="crashed"),
    ],
)
def test_program_is_run(output: str, code: int, settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    stand_in(tmp_path, "all_reduce_perf", output, code, first=RECORD)
    assert answer(run_check("nccl", NODE | settings, tmp_path))["result"] == said
    assert (tmp_path / "words").read_text().split() == ["-b", "1024M", "-e", "1024M", "-g", "8", "-c", "1"]


def test_command_of_the_users_own_is_run_with_its_words(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "reduce", recorded.nccl(), first=RECORD)
    assert answer(run_check("nccl", NODE | {"command": [str(program), "-n", "5"]}, Path("/nowhere")))["result"] == "passed"
    assert (tmp_path / "words").read_text().startswith("-n 5 -b 1024M")


def test_missing_program_is_unknown_and_says_what_to_install() -> None:
    said = answer(run_check("nccl", NODE, Path("/nowhere")))
    assert said["result"] == "unknown"
    assert "all_reduce_perf is not on this node: install nccl-tests" in said["found"]


def test_program_that_others_could_change_is_not_run(tmp_path: Path) -> None:
    stand_in(tmp_path, "all_reduce_perf", recorded.nccl()).chmod(0o777)
    said = answer(run_check("nccl", NODE, tmp_path))
    assert said["result"] == "unknown"
    assert "can be changed by others" in said["found"]


def test_program_that_hangs_is_ended_with_its_check(tmp_path: Path) -> None:
    stand_in(tmp_path, "all_reduce_perf", "", first='echo $$ >"$here/pid"; exec sleep 600')
    assert run_check("nccl", NODE, tmp_path, timeout_s=1).returncode == 124
    assert has_ended((tmp_path / "pid").read_text().strip())


@pytest.mark.parametrize(
    ("output", "least", "result"),
    [
        pytest.param(recorded.nccl(gpus=16), 300, PASSED, id="passed"),
        pytest.param(recorded.nccl(gpus=16), 400, FAILED, id="slow"),
        pytest.param(recorded.NCCL_WRONG.replace(recorded.nccl_ranks(8), recorded.nccl_ranks(16)), 0, FAILED, id="wrong"),
    ],
)
def test_rank_0_measures_for_all_and_limits_are_in_gigabytes(output: str, least: int, result: str, tmp_path: Path) -> None:
    stand_in(tmp_path, "all_reduce_perf", output)
    done = run_check("nccl", PAIR, tmp_path, SLURM_PROCID="0")
    measured = read_measured(done.returncode, done.stdout)
    assert measured is not None
    assert measured == Measured(337.35, 0, result == FAILED and not least, "GB/s")
    assert judge(measured, None, PAIR | {"minBusBandwidthGBs": least})[0] == result
    assert run_check("nccl", PAIR, tmp_path, SLURM_PROCID="1").stdout == ""


def test_pair_below_the_median_fails_and_a_single_pair_has_no_comparison() -> None:
    slow = Measured(100, 0, unit="GB/s")
    assert judge(slow, 300, PAIR) == (FAILED, "100 GB/s, where the median is 300 GB/s")
    assert judge(slow, None, PAIR) == (UNKNOWN, "100 GB/s, and nothing to compare with: set minBusBandwidthGBs")


def test_program_without_mpi_is_unknown(tmp_path: Path) -> None:
    """Each task reduces by itself then, fast as in one node."""
    stand_in(tmp_path, "all_reduce_perf", recorded.nccl())
    done = run_check("nccl", PAIR, tmp_path, SLURM_PROCID="0")
    assert read_measured(done.returncode, done.stdout) is None
    assert json.loads(done.stdout)["result"] == "unknown"
    assert "built with MPI=1" in json.loads(done.stdout)["found"]
