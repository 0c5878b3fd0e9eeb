"""What a preview finds: the plan against a cluster or a saved plan, and the story of the changes. Reads only."""

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from changes.disks import refusals, resizes
from changes.pulumi import PreviewError
from changes.pulumi import read_preview as read_digest
from changes.steps import Step
from changes.story import Queue, Story, tell
from engine import api, cluster, kubeconfig, policy, queue, record, recovery
from engine import stack as stacks
from engine.api import RefusedError
from engine.cluster import Home
from engine.faults import SlipwayError, UnreachableError, rows
from engine.kubeconfig import Where
from engine.plan import Plan
from engine.project import Project
from engine.screen import Screen
from engine.stack import Outlook

_NOT_ASKED = "no cluster was asked"


@dataclass(frozen=True)
class Look:
    """A preview."""

    plan: Plan
    outlook: Outlook
    against: str
    """What the plan was compared with, in words."""
    jobs: Callable[[], Queue]
    """Asks for the jobs of the cluster."""
    advice: tuple[str, ...]
    """What the policies advise."""

    def story(self) -> Story:
        """The story of the changes; the cluster is asked for its jobs where that matters."""
        return story_of(self.outlook.steps, self.jobs)


def look(
    screen: Screen, found: Project, where: Where | None, force_conflicts: bool, against: Path | None = None, must_answer: bool = False
) -> Look:
    """The plan, what would change, and what it was compared with: the cluster if it answers, else a saved plan. Raises SlipwayError,
    also where policies refuse the plan, and where the cluster must answer and does not."""
    silence = _NOT_ASKED
    advice: list[str] = []

    def check(plan: Plan) -> None:
        advice[:] = policy.enforce(found, plan)

    if where:
        try:
            read = stacks.read(found, where, screen, for_real=False, check=check)
            outlook = stacks.outlook(read, force_conflicts)
            screen.warn(*recovery.explained(read.recovered, read.home.keeper))
            jobs = functools.partial(queue.read, read.home.api, read.home.namespace)
            return Look(read.plan, outlook, str(read.home.api), jobs, tuple(advice))
        except UnreachableError as error:
            if must_answer:
                raise
            screen.warn(str(error))
            silence = "no cluster answered"
    recording = record.record(found)
    stacks.hide(screen, recording.plan)
    check(recording.plan)
    if not where:
        screen.warn(*recording.messages)
    file = against or stacks.plan_file(found)
    saved = stacks.load_plan(file)
    if against and saved is None:
        raise SlipwayError(f"{against}: no such file. `preview --json {against}` on the other state of the project writes it.")
    words = str(against) if against else "the plan saved last" if saved else "nothing: no plan is saved yet"
    outlook = stacks.saved_outlook(recording.plan, saved)
    refuse_resizes(outlook.steps, None)
    return Look(recording.plan, outlook, words, lambda: Queue(unknown=silence), tuple(advice))


def refuse_resizes(steps: Sequence[Step], where: Where | None) -> None:
    """Raises SlipwayError with the disks that Kubernetes will not resize, which the CLI's preview does not find out. The classes of the
    disks are asked for where there is a cluster, and this user may look."""
    found = resizes(steps)
    classes = claims = None
    if where and found:
        with contextlib.suppress(UnreachableError, RefusedError):
            asked = api.connect(kubeconfig.find(Path(), where.kubeconfig, where.context))
            home = Home(asked, found[0].namespace, "")
            claims = {str(each["metadata"]["name"]): str(each["spec"].get("storageClassName") or "") for each in cluster.claims(home)}
            classes = cluster.growing_classes(home)
    if said := refusals(found, classes, claims):
        what = "1 disk cannot get its new size" if len(said) == 1 else f"{len(said)} disks cannot get their new sizes"
        raise SlipwayError(f"{what}; nothing was changed:\n{rows(said)}")


def story_of(steps: Sequence[Step], jobs: Callable[[], Queue]) -> Story:
    """The story of some changes. `jobs` is asked only where the fate of jobs depends on which there are."""
    story = tell(steps, Queue(unknown=_NOT_ASKED))
    return tell(steps, jobs()) if story.concerns_jobs else story


def harms_of(steps: Sequence[Step], jobs: Callable[[], Queue]) -> tuple[str, ...]:
    """What some changes of Slurm's files would do to running jobs, a line each. `jobs` is asked only for changes that could."""
    return tell(steps, jobs()).harms if tell(steps, Queue(unknown=_NOT_ASKED)).harms else ()


def read_pulumi(file: Path) -> list[Step]:
    """The objects of a preview of the pulumi CLI. Raises SlipwayError."""
    try:
        return read_digest(sys.stdin.read() if str(file) == "-" else file.read_text())
    except (PreviewError, OSError, UnicodeDecodeError) as error:
        raise SlipwayError(f"{file}: not the output of `pulumi preview --json`: {error}") from error


def jobs_of(steps: Sequence[Step], where: Where | None) -> Queue:
    """The jobs of the cluster that the objects are in."""
    if where is None:
        return Queue(unknown=_NOT_ASKED)
    namespaces = {step.namespace for step in steps if step.is_node_set or step.kind == "ConfigMap"} - {""}
    if len(namespaces) != 1:
        return Queue(unknown=f"the objects are in {len(namespaces)} namespaces, so it is not known which cluster is meant")
    try:
        return queue.read(api.connect(kubeconfig.find(Path(), where.kubeconfig, where.context)), namespaces.pop())
    except UnreachableError as error:
        return Queue(unknown=str(error))
