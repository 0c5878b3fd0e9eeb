"""Previews: compares the plan with a cluster or a saved plan, and tells the story of the changes. Changes nothing."""

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
    """Asks the cluster for its jobs."""
    advice: tuple[str, ...]
    """The policies' advice."""

    def story(self) -> Story:
        """The story of the changes. The cluster is asked for its jobs if the story depends on them."""
        return story_of(self.outlook.steps, self.jobs)


def look(
    screen: Screen, project: Project, where: Where | None, force_conflicts: bool, against: Path | None = None, must_answer: bool = False
) -> Look:
    """Compares the plan with the cluster if it answers, else with a saved plan. Raises SlipwayError, also if policies refuse the plan, and
    if the cluster must answer and does not."""
    silence = _NOT_ASKED
    advice: list[str] = []

    def check(plan: Plan) -> None:
        advice[:] = policy.enforce(project, plan)

    if where:
        try:
            stack = stacks.read(project, where, screen, for_real=False, check=check)
            outlook = stacks.outlook(stack, force_conflicts)
            screen.warn(*recovery.explained(stack.recovered, stack.home.keeper))
            jobs = functools.partial(queue.read, stack.home.api, stack.home.namespace)
            return Look(stack.plan, outlook, str(stack.home.api), jobs, tuple(advice))
        except UnreachableError as error:
            if must_answer:
                raise
            screen.warn(str(error))
            silence = "no cluster answered"
    recording = record.record(project)
    stacks.hide(screen, recording.plan)
    check(recording.plan)
    if not where:
        screen.warn(*recording.messages)
    file = against or stacks.plan_file(project)
    saved = stacks.load_plan(file)
    if against and saved is None:
        raise SlipwayError(f"{against}: no such file. Write it with `preview --json {against}` in the other state of the project.")
    baseline = str(against) if against else "the plan saved last" if saved else "nothing: no plan is saved yet"
    outlook = stacks.saved_outlook(recording.plan, saved)
    refuse_resizes(outlook.steps, None)
    return Look(recording.plan, outlook, baseline, lambda: Queue(unknown=silence), tuple(advice))


def refuse_resizes(steps: Sequence[Step], where: Where | None) -> None:
    """Raises SlipwayError with the disks that Kubernetes will not resize, which the Pulumi CLI's preview does not report. The cluster, if
    there is one, is asked for the classes of the disks, unless this user may not read them."""
    disk_resizes = resizes(steps)
    classes = claims = None
    if where and disk_resizes:
        with contextlib.suppress(UnreachableError, RefusedError):
            connected = api.connect(kubeconfig.find(Path(), where.kubeconfig, where.context))
            home = Home(connected, disk_resizes[0].namespace, "")
            claims = {str(claim["metadata"]["name"]): str(claim["spec"].get("storageClassName") or "") for claim in cluster.claims(home)}
            classes = cluster.growing_classes(home)
    if reasons := refusals(disk_resizes, classes, claims):
        summary = "1 disk cannot get its new size" if len(reasons) == 1 else f"{len(reasons)} disks cannot get their new sizes"
        raise SlipwayError(f"{summary}; nothing was changed:\n{rows(reasons)}")


def story_of(steps: Sequence[Step], jobs: Callable[[], Queue]) -> Story:
    """The story of some changes. `jobs` is called only if the story depends on it."""
    story = tell(steps, Queue(unknown=_NOT_ASKED))
    return tell(steps, jobs()) if story.concerns_jobs else story


def harms_of(steps: Sequence[Step], jobs: Callable[[], Queue]) -> tuple[str, ...]:
    """What changes of Slurm's files would do to running jobs, one line each. `jobs` is called only for changes that could harm jobs."""
    return tell(steps, jobs()).harms if tell(steps, Queue(unknown=_NOT_ASKED)).harms else ()


def read_pulumi(file: Path) -> list[Step]:
    """The objects in a preview of the Pulumi CLI. Raises SlipwayError."""
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
        return Queue(unknown=f"the objects are in {len(namespaces)} namespaces, so it is not clear which cluster is meant")
    try:
        return queue.read(api.connect(kubeconfig.find(Path(), where.kubeconfig, where.context)), namespaces.pop())
    except UnreachableError as error:
        return Queue(unknown=str(error))
