"""Which lines Slurm's own parser accepts."""

import json
import subprocess
from pathlib import Path

from tests.support.slurm.image_root import inside

SCRIPT = Path(__file__).with_name("slurm_reader.py")
BASE = {"ClusterName": "t", "SlurmctldHost": "localhost"}


def ask(image_root: Path, head: str, lines: list[tuple[str, str]]) -> list[bool]:
    """Whether Slurm takes a file with each of the settings."""

    def text(key: str, value: str) -> str:
        base = "".join(f"{each}={said}\n" for each, said in BASE.items() if each != key)
        return f"{base}{head}{key}={value}\n"

    command = inside(image_root, "python3", "-c", SCRIPT.read_text())
    texts = json.dumps([text(*each) for each in lines])
    done = subprocess.run(command, input=texts, capture_output=True, text=True, check=True, timeout=900)
    return json.loads(done.stdout)
