"""The fate of jobs: running jobs on nodes that leave, and waiting jobs that could never run any more. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from changes.configuration import Configuration
from slurm.hostlists import HostlistError, expand, fold

_ENDLESS = ("INFINITE", "UNLIMITED", "-1")


class QueueError(ValueError):
    """The answer is not a list of jobs."""


@dataclass(frozen=True)
class Job:
    """A job as slurmctld has it. Numbers are None where Slurm gives none."""

    number: str
    """As squeue shows it: 12, 12_3, 12_[4-9]."""
    user: str
    is_waiting: bool
    partitions: tuple[str, ...]
    """The job needs one of them."""
    nodes: frozenset[str] = frozenset()
    """The nodes that it has; empty while it waits."""
    ends_at: int | None = None
    """Seconds since 1970: the latest that its time limit allows."""
    limit_min: int | None = None
    """Minutes; None for no limit."""
    asks_for: frozenset[str] = frozenset()
    """Nodes that it asks for by name."""
    node_count: int = 1
    features: str = ""
    """Its --constraint."""
    tres: Mapping[str, int] | None = None
    """Its total request by TRES, in Slurm's spelling (gres/gpu, gres/gpu:h100), without memory."""


@dataclass(frozen=True)
class Affected:
    """Running jobs on nodes that a change takes out of service."""

    why: str
    nodes: frozenset[str]
    most: int | None
    """How many of the nodes leave, if the controller chooses."""
    policy: str
    """The fate of the jobs."""
    jobs: int
    users: tuple[tuple[str, int], ...]
    """Whose they are, most jobs first."""
    last_end: int | None
    """Latest end of all the jobs, in seconds since 1970. None without jobs, or if a job has no limit."""
    has_endless: bool


@dataclass(frozen=True)
class Stranded:
    """Waiting jobs that could run before the change, and never after it."""

    number: str
    user: str
    reason: str


def affected(why: str, nodes: frozenset[str], most: int | None, policy: str, jobs: Iterable[Job]) -> Affected:
    """The jobs that run on some of the nodes."""
    on_them = [job for job in jobs if job.nodes & nodes]
    ends = [job.ends_at for job in on_them]
    known = [end for end in ends if end is not None]
    users = Counter(job.user for job in on_them)
    ranked = tuple(sorted(users.items(), key=lambda user_count: (-user_count[1], user_count[0])))
    endless = len(known) < len(ends)
    return Affected(why, nodes, most, policy, len(on_them), ranked, None if endless else max(known, default=None), endless)


def stranded(jobs: Iterable[Job], old: Configuration, new: Configuration) -> list[Stranded]:
    """Waiting jobs that no partition could ever run after the change, although one could before. Reports only what is certain."""
    before, after = _Offer(old), _Offer(new)
    waiting = [job for job in jobs if job.is_waiting]
    return [Stranded(job.number, job.user, why) for job in waiting if (why := after.obstacle(job)) and not before.obstacle(job)]


class _Offer:
    """A configuration's offer to jobs. Jobs of one shape are judged once: queues hold tens of thousands, of few shapes."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._judged: dict[object, str] = {}
        self._fitting: dict[tuple[str, str], list[Mapping[str, str]]] = {}

    def obstacle(self, job: Job) -> str:
        """Why none of the job's partitions could run it; "" if one might."""
        tres = tuple(sorted((job.tres or {}).items()))
        shape = (job.partitions, job.limit_min, job.asks_for, job.node_count, job.features, tres)
        if shape not in self._judged:
            reasons = [self._obstacle_in(job, name) for name in job.partitions]
            self._judged[shape] = "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""
        return self._judged[shape]

    def _obstacle_in(self, job: Job, name: str) -> str:
        if name not in self._configuration.partitions:
            return f"partition {name} is gone"
        line = {key.lower(): value for key, value in self._configuration.partitions[name].items()}
        if (most := minutes(line.get("maxtime", ""))) is not None and (job.limit_min is None or job.limit_min > most):
            asked = f"{job.limit_min} min" if job.limit_min is not None else "no limit"
            return f"it asks for {asked}, and partition {name} allows {most} min"
        if job.asks_for and (gone := job.asks_for - self._configuration.nodes_of(name)):
            return f"it asks for {fold(gone)}, which partition {name} does not have any more"
        lines = self._lines(name, job.features)
        if len(lines) < job.node_count:
            which = f" with {job.features}" if job.features else ""
            return f"it asks for {job.node_count} nodes{which}, and partition {name} has {len(lines)}"
        for tres, asked in (job.tres or {}).items():
            available = sum(_amount(line, tres) for line in lines)
            if available < asked:
                return f"it asks for {asked} {tres}, and partition {name} has {available}"
        return ""

    def _lines(self, name: str, features: str) -> list[Mapping[str, str]]:
        """The lines of a partition's nodes that do not lack a feature, one for each node."""
        key = name, features
        if key not in self._fitting:
            nodes = self._configuration.nodes
            self._fitting[key] = [nodes[node] for node in self._configuration.nodes_of(name) if _offers(nodes[node], features)]
        return self._fitting[key]


def _offers(line: Mapping[str, str], features: str) -> bool:
    """True unless the node certainly lacks a feature. Only `a&b` is understood; any other constraint counts as met."""
    if not features or any(letter in features for letter in "|[]()*!:"):
        return True
    node_features = {feature for key, value in line.items() if key.lower() in ("feature", "features") for feature in value.split(",")}
    return set(features.replace(",", "&").split("&")) <= node_features


def _amount(line: Mapping[str, str], tres: str) -> int:
    """How much of a TRES a node has, according to slurm.conf."""
    pairs = {key.lower(): value for key, value in line.items()}
    if tres == "cpu":
        return _whole(pairs.get("cpus", ""))
    kind, _, model = tres.removeprefix("gres/").partition(":")
    total = 0
    for item in pairs.get("gres", "").split(","):
        parts = item.split(":")
        if parts[0] == kind and (not model or model in parts[1:-1]):
            total += _whole(parts[-1]) if len(parts) > 1 else 1
    return total


def minutes(text: str) -> int | None:
    """A time of Slurm's in minutes, rounded up. None for an empty text or no limit. Source: slurm.conf(5), MaxTime."""
    if not text or text.upper() in _ENDLESS:
        return None
    days, dash, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":") if part.isdecimal()]
    if not parts or (dash and not days.isdecimal()):
        return None
    if dash:
        hours, mins, seconds = [*parts, 0, 0][:3]
        return int(days) * 1440 + hours * 60 + mins + (seconds > 0)
    if len(parts) == 3:
        return parts[0] * 60 + parts[1] + (parts[2] > 0)
    return parts[0] + (len(parts) == 2 and parts[1] > 0)


def read_queue(answer: object) -> tuple[Job, ...]:
    """The jobs of programs/running_jobs' answer to GET /queue/. Raises QueueError."""
    try:
        return tuple(_job(row) for row in answer["jobs"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError, HostlistError) as error:
        raise QueueError(f"no list of jobs: {type(error).__name__}: {error}") from error


def _job(row: Mapping[str, str]) -> Job:
    is_waiting = row["State"] == "PENDING"
    tres = dict(pair.split("=", 1) for pair in row["tres-alloc"].split(",") if "=" in pair)
    wanted = {name: int(amount) for name, amount in tres.items() if (name == "cpu" or name.startswith("gres/")) and amount.isdecimal()}
    end = row["EndTime"]
    return Job(
        number=row["JobArrayID"],
        user=row["UserName"],
        is_waiting=is_waiting,
        partitions=tuple(row["Partition"].split(",")),
        nodes=frozenset(expand(row["NodeList"])) if not is_waiting else frozenset(),
        ends_at=int(end) if end.isdecimal() and not is_waiting else None,
        limit_min=minutes(row["TimeLimit"]),
        asks_for=frozenset(expand(row["ReqNodes"])) if is_waiting else frozenset(),
        node_count=_whole(tres.get("node", "")) or 1,
        features="" if row["Feature"] in ("(null)", "N/A") else row["Feature"],
        tres=wanted,
    )


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else 0
