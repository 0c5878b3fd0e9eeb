"""How tests run a verb."""

import pytest

from cli import main as cli


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """One verb, and all that it printed."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    said = capsys.readouterr()
    assert ended.value.code == code, said
    return said.out + said.err
