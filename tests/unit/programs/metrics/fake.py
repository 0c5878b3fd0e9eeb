"""A Slurm that answers what a test wants."""

from tests.support.programs.metrics.recorded import NOW, job, node


class Slurm:
    """A Slurm of recorded answers by command, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answers: dict[str, str | Exception] = {
            "scontrol": node("gpu-0", "MIXED+CLOUD", (2, 2), (1, 4)),
            "squeue": job(),
            "sacct": "",
        }
        self.asked: list[tuple[str, ...]] = []

    def ask(self, *command: str) -> str:
        self.asked.append(command)
        self.now += 2
        answer = self.answers[command[0]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clock(self) -> float:
        return self.now

    def wall(self) -> float:
        return NOW + self.now
