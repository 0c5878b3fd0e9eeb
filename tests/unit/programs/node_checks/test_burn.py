"""The check of GPUs under full load: what gpu_burn prints, and which GPUs that names."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks import burn
from programs.node_checks.kinds import KINDS
from programs.node_checks.vendor import Ended
from tests.unit.programs.node_checks import recorded_vendors as recorded
from tests.unit.programs.node_checks.vendors import RECORD, answer, has_ended, run_check, stand_in

NODE: dict[str, Any] = {**KINDS["burn"].limits, "gpus": 2, "command": []}
FINE = (17000, 0, "OK")


def test_table_is_read_with_the_reports_before_it() -> None:
    text = recorded.burn(FINE, (16000, 12, "FAULTY"))
    assert burn.read(text) == [burn.Gpu(0, False, 17000, 0), burn.Gpu(1, True, 16000, 12)]
    assert burn.read(text.replace("  temps: ", "  temps: -- - ")) == burn.read(text)
    assert burn.read(recorded.BURN_HEAD) == []


@pytest.mark.parametrize(
    ("ended", "result", "found"),
    [
        pytest.param(
            Ended(0, recorded.burn(FINE, (16500, 0, "OK")), ""), "passed", "2 GPUs at 16500 to 17000 Gflop/s without errors", id="fine"
        ),
        pytest.param(Ended(0, recorded.burn(FINE, (17000, 7, "FAULTY")), ""), "failed", "GPU 1 computes wrong: 7 errors", id="wrong"),
        pytest.param(Ended(0, recorded.burn(FINE, (-1, -1, "FAULTY")), ""), "failed", "GPU 1 has died", id="died"),
        pytest.param(
            Ended(0, recorded.burn(FINE, FINE, (13599, 0, "OK")), ""),
            "failed",
            "GPU 2 reaches 13599 Gflop/s, where the median is 17000",
            id="slower-than-its-neighbours",
        ),
        pytest.param(
            Ended(0, recorded.burn(FINE, FINE, (13600, 0, "OK")), ""), "passed", "3 GPUs at 13600 to 17000", id="just-fast-enough"
        ),
        pytest.param(
            Ended(0, recorded.burn(FINE, FINE, (0, 0, "OK")), ""),
            "unknown",
            "no speed of GPU 2: give it more seconds",
            id="no-report-of-one",
        ),
        pytest.param(Ended(0, recorded.burn(FINE), ""), "failed", "1 GPUs took part, 2 expected", id="too-few"),
        pytest.param(Ended(0, recorded.burn(FINE, FINE, reports=1), ""), "unknown", "gpu_burn ended with 0", id="no-speed-reported"),
        pytest.param(Ended(1, recorded.burn(FINE, FINE), ""), "unknown", "gpu_burn ended with 1", id="ended-badly"),
        pytest.param(Ended(123, "", recorded.BURN_NO_ROOM), "unknown", "No clients are alive!  Aborting", id="no-memory-left"),
        pytest.param(Ended(123, "", recorded.BURN_NO_CUDA), "unknown", "No clients are alive!  Aborting", id="no-device"),
        pytest.param(
            Ended(123, "", 'Failure during compute: Error in "x": uncorrectable ECC error encountered\n'),
            "failed",
            "ECC",
            id="broken-memory",
        ),
        pytest.param(Ended(-9, recorded.BURN_HEAD, ""), "unknown", "killed by signal 9", id="killed"),
        pytest.param(Ended(0, "", ""), "unknown", "printed nothing", id="silent"),
    ],
)
def test_run_is_judged(ended: Ended, result: str, found: str) -> None:
    said, words = burn.judge(ended, NODE)
    assert said == result
    assert found in words


@given(st.text() | st.lists(st.sampled_from(recorded.burn(FINE, FINE).splitlines()) | st.text()).map("\n".join), st.integers(0, 2))
def test_no_text_is_an_error_and_only_a_whole_table_passes(text: str, code: int) -> None:
    said, _ = burn.judge(Ended(code, text, ""), NODE)
    assert said in ("passed", "failed", "unknown")
    gpus = burn.read(text)
    assert said != "passed" or (len(gpus) >= 2 and not any(each.is_faulty for each in gpus) and code == 0)


@given(st.integers(0, len(recorded.burn(FINE, FINE)) - 2))
def test_cut_output_never_passes(length: int) -> None:
    assert burn.judge(Ended(0, recorded.burn(FINE, FINE)[:length], ""), NODE)[0] != "passed"


def test_program_is_run_in_its_folder_where_its_kernel_is(tmp_path: Path) -> None:
    folder, path = tmp_path / "gpu-burn", tmp_path / "bin"
    folder.mkdir()
    path.mkdir()
    stand_in(folder, "gpu_burn", recorded.burn(FINE, FINE), first=f'here={folder}; {RECORD}; pwd >"$here/folder"')
    (path / "gpu_burn").symlink_to(folder / "gpu_burn")
    assert answer(run_check("burn", NODE, path))["result"] == "passed"
    assert (folder / "words").read_text().split() == ["60"]
    assert (folder / "folder").read_text().strip() == str(folder)


def test_missing_program_is_unknown_and_says_what_to_install() -> None:
    said = answer(run_check("burn", NODE, Path("/nowhere")))
    assert said["result"] == "unknown"
    assert "gpu_burn is not on this node: install gpu-burn" in said["found"]


def test_program_that_hangs_is_ended_with_its_check(tmp_path: Path) -> None:
    stand_in(tmp_path, "gpu_burn", "", first='echo $$ >"$here/pid"; exec sleep 600')
    assert run_check("burn", NODE, tmp_path, timeout_s=1).returncode == 124
    assert has_ended((tmp_path / "pid").read_text().strip())
