from collections.abc import Callable
from functools import partial

import pytest

from slurm.reasons import (
    check,
    cordon,
    gpu_fault,
    gpus,
    has_failed_to_resume,
    is_automatic,
    is_drain_of_a_pod,
    is_lost,
    is_on_purpose,
    machine_in,
    maintenance,
    printable,
    written,
)


@pytest.mark.parametrize(
    ("reason", "of_a_pod", "automatic", "failed"),
    [
        pytest.param("slipway: pod stopping", True, False, False, id="pod-stopping"),
        pytest.param("slipway: pod stopping : Not responding", True, False, False, id="pod-stopping-and-away-too-long"),
        pytest.param("slipway: nodeset update", True, False, False, id="update"),
        pytest.param("slipway: nodeset update : ResumeTimeout reached", True, False, True, id="update-of-a-node-that-never-came"),
        pytest.param("slipway: nodeset scale-in : Not responding : ResumeTimeout reached", True, False, True, id="both-appended"),
        pytest.param("slipway: gpus: 7 GPUs, and the config says 8", True, False, False, id="gpus"),
        pytest.param("slipway: cordon worker-3: new fans", False, False, False, id="cordon"),
        pytest.param("slipway: check disk: 0 MiB free : Not responding", False, False, False, id="check"),
        pytest.param("slipway: pod was replaced", False, True, False, id="pod-replaced"),
        pytest.param("fan is loud : Not responding", False, False, False, id="an-administrators-and-away"),
        pytest.param("Not responding", False, True, False, id="silent"),
        pytest.param("ResumeTimeout reached", False, True, True, id="never-came"),
        pytest.param("", False, False, False, id="none"),
    ],
)
def test_reason_keeps_its_owner_whatever_slurm_appends(reason: str, of_a_pod: bool, automatic: bool, failed: bool) -> None:
    assert (is_drain_of_a_pod(reason), is_automatic(reason), has_failed_to_resume(reason)) == (of_a_pod, automatic, failed)


def test_fault_of_gpus_is_read_back_whatever_slurm_appends() -> None:
    reason = gpus("7 GPUs, and the config says 8")
    assert gpu_fault(f"{reason} : Not responding") == "7 GPUs, and the config says 8"
    assert gpu_fault("slipway: check gpu: 7 GPU devices, 8 declared") == ""
    assert not is_on_purpose(reason)


@pytest.mark.parametrize("appended", ["", " : Not responding", " : ResumeTimeout reached", " : Not responding : ResumeTimeout reached"])
@pytest.mark.parametrize("reason", ["slipway: pod stopping", "fan is loud", "a : b", ""])
def test_written_reason_is_what_somebody_wrote(reason: str, appended: str) -> None:
    assert written(reason + appended) == reason


@pytest.mark.parametrize(
    ("reason", "lost"),
    [
        ("", True),
        ("Not responding", True),
        ("Not responding : ResumeTimeout reached", True),
        ("slipway: nodeset update : Not responding", False),
        ("fan is loud", False),
    ],
)
def test_reason_is_lost_when_only_slurms_own_words_are_left(reason: str, lost: bool) -> None:
    assert is_lost(reason) is lost


WORDS_OF_OTHERS = [
    pytest.param("\x1b[2Jnew\x07 fans\x9b\n\u202eabove", "[2Jnew fans above", id="what-a-terminal-obeys"),
    pytest.param("fan : Not responding", "fan", id="as-slurmctld-ends-it"),
    pytest.param("fan : ResumeTimeout reached : Not responding", "fan", id="as-it-ends-it-twice"),
    pytest.param("fan : Not responding now", "fan : Not responding now", id="not-its-end"),
    pytest.param("x" * 300, "x" * 200, id="long"),
]


@pytest.mark.parametrize(("words", "kept"), WORDS_OF_OTHERS)
@pytest.mark.parametrize("make", [partial(check, "disk"), partial(cordon, "worker-3"), partial(maintenance, "worker-3")])
def test_reason_with_words_of_others_is_plain_and_read_back_as_written(make: Callable[[str], str], words: str, kept: str) -> None:
    reason = make(words)
    assert reason.isascii()
    assert reason.isprintable()
    assert kept in reason
    assert len(reason) <= 240
    assert not has_failed_to_resume(reason)
    for appended in ("", " : Not responding", " : ResumeTimeout reached"):
        assert written(reason + appended) == reason
    assert machine_in(reason) in ("", "worker-3")


def test_fault_of_gpus_that_ends_as_slurmctld_ends_reasons_is_read_back() -> None:
    assert written(f"{gpus('fan : Not responding')} : Not responding") == gpus("fan : Not responding")


def test_text_for_people_keeps_letters_and_loses_terminal_escapes() -> None:
    assert printable("\x1b[2JL\u00fcfter\r\n \u202edefekt\x9b") == "[2JL\u00fcfter defekt"
