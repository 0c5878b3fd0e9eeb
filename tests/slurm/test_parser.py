"""What configs takes for a line of slurm.conf or a list of nodes is what Slurm's own parser reads in it: the library of the built image."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from configs.models.fields import is_one_line
from configs.models.slurm_keys import LINE_KEYS
from slurm.conf import known, pairs_of
from slurm.people import ACCOUNTS, LEAST_ID, RESERVED, TAKEN
from tests.support.slurm.image_pods import PROJECT
from tests.support.slurm.image_root import inside

SCRIPT = PROJECT / "tests/support/slurm/slurm_parser.py"
KEYS = ("MinJobAge", "WaitTime", "Epilog")

TABLE = [
    pytest.param(["MinJobAge=1", "WaitTime=2"], id="plain"),
    pytest.param(["minjobage = 1", "WAITTIME\t=\t2"], id="case-and-spaces"),
    pytest.param(['Epilog="a b"', "WaitTime=1"], id="quoted"),
    pytest.param(['Epilog="a#b"'], id="hash-in-quotes-is-a-comment"),
    pytest.param(["# MinJobAge=1", "WaitTime=1 # MinJobAge=2", "MinJobAge=3#4"], id="comments"),
    pytest.param(["# the end of a comment draws nothing in \\", "WaitTime=1"], id="backslash-in-a-comment"),
    pytest.param(["WaitTime+=1", "MinJobAge-=1", "Epilog*=1"], id="operators"),
    pytest.param(['Epilog="1"WaitTime=2'], id="text-behind-quotes"),
    pytest.param(["Epilog==1", "WaitTime=1;MinJobAge=2"], id="signs-in-values"),
    pytest.param(
        ['NodeName = "gpu-0" CPUs=1 Reason="a b"', "NodeSet=x Nodes=a,b", "DownNodes=gpu-0 State=DOWN"], id="lines-of-their-own-kind"
    ),
    pytest.param(["nodename=gpu-[0-1] cpus=1", "PARTITIONNAME=x Nodes=ALL"], id="lines-in-another-case"),
    pytest.param(["", "   ", "\t"], id="blanks"),
    pytest.param(["Epilog='a'"], id="single-quotes-are-letters"),
]
REFUSED = [
    pytest.param(["MinJobAge=1 \\", "WaitTime=2"], id="line-drawn-in"),
    pytest.param(["MinJobAge=1\\  ", "WaitTime=2"], id="line-drawn-in-behind-spaces"),
    pytest.param(["Epilog=a\\#b"], id="hidden-comment"),
    pytest.param(["Epilog=a\\\\#b"], id="comment-behind-two"),
    pytest.param(["MinJobAge"], id="no-value"),
    pytest.param(["MinJobAge="], id="empty-value"),
    pytest.param(["=1"], id="no-key"),
    pytest.param(['Epilog="a b'], id="open-quotes"),
    pytest.param(['Epilog="a b"c'], id="spaces-in-quotes-and-text-behind"),
    pytest.param(["Include /tmp/x"], id="include"),
]
HEADS = ["MinJobAge=", "minjobage = ", 'Epilog="', "WaitTime+=", "NodeName=", "nodename =", 'NodeSet="', ""]
PIECES = [
    "MinJobAge",
    "minjobage",
    "WaitTime",
    "Epilog",
    "NodeName",
    "NodeSet",
    "=",
    " = ",
    "+=",
    '"',
    "'",
    "#",
    "\\",
    " ",
    "\t",
    "a",
    "gpu-0",
    ",",
    "-",
    ";",
    "1",
]


def ask(image_root: Path, texts: list[str]) -> list[list[list[str]] | None]:
    """What Slurm reads in each text."""
    keys = ",".join([*KEYS, *(f"{key}+" for key in sorted(LINE_KEYS))])
    command = inside(image_root, "python3", "-c", SCRIPT.read_text(), keys)
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=900)
    return json.loads(done.stdout)


def ours(lines: list[str]) -> list[list[str]] | None:
    """What configs reads: each pair, and of lines of a kind of their own the first, with the rest of the line behind it."""
    found: list[list[str]] = []
    for line in lines:
        pairs = pairs_of(line)
        if pairs is None:
            return None
        if pairs and known(pairs[0][0], LINE_KEYS):
            rest = line.split("#", 1)[0].split("=", 1)[1].strip(" \t")
            quoted = f'"{pairs[0][1]}"'
            behind = rest.removeprefix(quoted if rest.startswith(quoted) else pairs[0][1])
            found.append([str(known(pairs[0][0], LINE_KEYS)), pairs[0][1], behind.strip(" \t")])
        elif len(pairs) > 1 or (pairs and known(pairs[0][0], KEYS) is None):
            return None  # check_slurm says so
        elif pairs:
            found.append([str(known(pairs[0][0], KEYS)), pairs[0][1]])
    return found


@pytest.mark.parametrize("lines", TABLE)
def test_line_is_read_as_slurm_reads_it(image_root: Path, lines: list[str]) -> None:
    assert ask(image_root, ["".join(f"{line}\n" for line in lines)]) == [ours(lines)]
    assert ours(lines) is not None


@pytest.mark.parametrize("lines", REFUSED)
def test_line_that_slurm_may_read_otherwise_is_refused(lines: list[str]) -> None:
    assert ours(lines) is None


def test_two_keys_on_one_line_end_slurm(image_root: Path) -> None:
    assert ask(image_root, ["MinJobAge=1 WaitTime=2\n", "MinJobAge=1 NodeName=gpu-0\n"])[0] is None


def test_whatever_is_accepted_is_read_alike(image_root: Path) -> None:
    """Some hundreds of files of random pieces; whether Slurm takes those that are refused is its own affair."""
    draw = random.Random(11)
    files = [
        [f"{draw.choice(HEADS)}{''.join(draw.choices(PIECES, k=draw.randint(1, 6)))}" for _ in range(draw.randint(1, 2))]
        for _ in range(4000)
    ]
    taken = [lines for lines in files if all(map(is_one_line, "".join(lines).replace("\t", " "))) and ours(lines)][:400]
    assert len(taken) > 200
    answers = ask(image_root, ["".join(f"{line}\n" for line in lines) for lines in taken])
    assert [(lines, answer) for lines, answer in zip(taken, answers, strict=True) if answer != ours(lines)] == []


def test_accounts_of_the_image_are_those_that_no_person_can_have(image_root: Path) -> None:
    """Names all of them, numbers those that people could have; and the fixed ones are what the components take."""
    files = [(image_root / "etc" / name).read_text().splitlines() for name in ("passwd", "group")]
    for lines in files:
        found = {line.split(":")[0]: int(line.split(":")[2]) for line in lines}
        assert found.keys() - RESERVED == set()
        assert {number for number in found.values() if number >= LEAST_ID} <= TAKEN
        assert {name: found[name] for name in ACCOUNTS} == ACCOUNTS
