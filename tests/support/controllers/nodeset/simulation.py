"""Random histories of a simulated world with a controller that may be killed at any write: the laws hold at each, and the set settles.

`python -m` runs it for long.
"""

import random
import sys
import time
from typing import Annotated

import typer

from controllers.nodeset.pods import revision
from controllers.nodeset.structs import PodTemplate, UpdateStrategy
from slurm.reasons import KILL_FAILED, RESUME_FAILED
from tests.support.controllers.nodeset.simulated_controller import run_round
from tests.support.controllers.nodeset.simulated_events import (
    end_look,
    happen,
    ping,
    serve_machine,
    stop_pods,
    take_sizes,
    wake_kubelet,
    withdraw_requests,
)
from tests.support.controllers.nodeset.simulated_world import (
    ANNOUNCED,
    NOWHERE,
    ORDINALS,
    PEOPLE,
    RESUME_TIMEOUT_S,
    LawBroken,
    World,
    make_set,
)

_FAILING_ROUNDS = 10
"""While the world settles, checks go on failing for so many rounds."""


def settle(world: World) -> None:
    """Faults stop, checks pass, people lift their drains and wait, jobs end: within so many rounds the set must be what it should be."""
    world.is_silent, world.is_window_open, world.is_calm = False, True, True
    world.cordoned.clear()
    world.absent.clear()
    wake_kubelet(world)
    for causes in world.machine_causes.values():
        causes -= set(ANNOUNCED)
    world.respec(update_strategy=UpdateStrategy("RollingUpdate", 1, min_ready_seconds=50))
    if world.nodeset.spec.template.spec["containers"][0]["image"] == NOWHERE:
        world.respec(template=PodTemplate({"containers": [{"name": "slurmd", "image": "a"}]}))  # somebody mends it
    begun = world.now
    while world.asked:
        serve_machine(world)
    for round_ in range(90):
        for ordinal, node in world.nodes.items():
            if node.job_ends is not None:
                node.set_job(None)
            if node.reason.startswith(PEOPLE):
                world.resume(node)
            if node.looked_at:
                end_look(node, "")
            if round_ >= _FAILING_ROUNDS:
                node.faults.clear()
                node.passed_for |= {check: asked[ordinal] for check, asked in world.check_jobs.items() if ordinal in asked}
                world.machine_causes.clear()
                withdraw_requests(world)
                if node.reason.startswith(KILL_FAILED):
                    world.resume(node)
            if "POWERING_DOWN" in node.words:
                node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
            if {"MIXED", "POWERED_DOWN"} <= node.words:
                node.words = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
            elif "POWERING_UP" in node.words and ordinal not in world.pods and world.now - begun > RESUME_TIMEOUT_S:
                node.words = {"DOWN", "CLOUD", "POWERED_DOWN"} | node.words & {"DRAIN"}
                node.append(RESUME_FAILED)
        world.check_jobs.clear()
        world.now += 100
        while world.asked:
            serve_machine(world)
        take_sizes(world)
        run_round(world)
        for ordinal, pod in world.pods.items():
            if not pod.ready and not pod.terminating and not pod.finished:
                world.place(ordinal)
        stop_pods(world)
        ping(world)
        if round_ == _FAILING_ROUNDS - 1:
            world.check_jobs.clear()
            run_round(world)
            is_braked = world.repairs.systemic_since is not None
            open_ = {ordinal for ordinal in world.nodes if world.is_failing(ordinal) and world.takes_jobs(ordinal) and not is_braked}
            world.law(not open_, f"{open_} take jobs, although checks say that they fail: {world.nodes}")
            open_ = {ordinal for ordinal, pod in world.pods.items() if pod.drain_requested and world.takes_jobs(ordinal)}
            world.law(not open_, f"{open_} take jobs, although their pods ask for a drain: {world.nodes}")
            open_ = {ordinal for ordinal in world.nodes if world.waits_before_jobs(ordinal) and world.takes_jobs(ordinal)}
            world.law(not open_, f"{open_} take jobs, although their machines have not passed the checks: {world.nodes}")
            looked_for = {ordinal for asked in world.check_jobs.values() for ordinal in asked}
            unseen = {ordinal for ordinal in world.nodes if is_to_be_seen(world, ordinal)}
            world.law(unseen <= looked_for, f"no check looks at {unseen - looked_for}, which it has seen failing elsewhere: {world.nodes}")
            sure = {ordinal for ordinal, each in world.repairs.nodes.items() if each.state in ("Draining", "Verifying", "GivenUp")}
            open_ = {ordinal for ordinal in sure if world.broken(ordinal) and world.takes_jobs(ordinal) and not is_braked}
            world.law(not open_, f"{open_} take jobs, although their machines are broken: {world.nodes}, {world.repairs}")
    if world.nodeset.metadata.deletion_timestamp is not None:
        world.law(world.is_finished, f"the set is not gone: {world.pods}")
        return
    world.law(not world.held, f"nodes that have not got their size yet: {world.held}")
    spec, current = world.nodeset.spec, revision(world.nodeset.spec)
    here = {ordinal for ordinal, pod in world.pods.items() if pod.ready and not pod.terminating}
    world.law(here == set(world.pods), f"pods that are neither ready nor gone: {world.pods}")
    world.law(all(pod.revision == current for pod in world.pods.values()), f"pods of an older template: {world.pods}")
    if spec.is_elastic:
        awake = {ordinal for ordinal, node in world.nodes.items() if not node.is_off and ordinal < (spec.max or 0)}
        world.law(here == awake | set(range(spec.min or 0)), f"pods {here}, awake {awake}, at least {spec.min}")
    else:
        world.law(len(here) == spec.replicas, f"{len(here)} pods, wanted {spec.replicas}")
        world.law(world.claims == here, f"disks of {world.claims}, pods {here}")
    served = range(min(spec.max, ORDINALS)) if spec.max is not None else here
    drained = {ordinal for ordinal in served if world.nodes[ordinal].words & {"DRAIN", "DOWN"}}
    world.law(not drained, f"{drained} take no jobs: {world.nodes}")
    repaired = {ordinal: each for ordinal, each in world.repairs.nodes.items() if each.state != "InService"}
    world.law(not repaired and world.repairs.systemic_since is None, f"repairs that did not end: {world.repairs}")
    others = {ordinal for ordinal in world.nodes if ordinal not in served and "DRAIN" not in world.nodes[ordinal].words}
    world.law(not others, f"Slurm may give jobs to {others}, which have no pod: {world.nodes}")


def is_to_be_seen(world: World, ordinal: int) -> bool:
    """True for a node that is drained for what a check has seen on another machine alone, and that it may look at now: not where Slurm
    has drained it for processes that it cannot kill, or others have, which come first."""
    pod, node = world.pods.get(ordinal), world.nodes[ordinal]
    is_up = pod is not None and pod.ready and not pod.terminating and ordinal not in world.struck
    return (
        is_up
        and pod is not None
        and not pod.drain_requested
        and node.words == {"IDLE", "CLOUD", "DRAIN"}
        and not node.reason.startswith(KILL_FAILED)
        and any(drains and world.is_inherited(ordinal, check) for check, drains in node.faults.items())
    )


def run(seed: int, steps: int) -> int:
    """One history; gives the steps that were taken. Raises LawBroken."""
    rng = random.Random(seed)
    world = World(rng, make_set(elastic=seed % 2 == 1, repaired=seed % 4 >= 2, verified=seed % 8 >= 4, checked=seed % 3 == 0))
    try:
        while world.steps < steps and not world.is_finished:
            happen(world)
            if rng.random() < 0.6:
                run_round(world, kill_after=rng.randint(0, 4) if rng.random() < 0.3 else None)
        settle(world)
    except LawBroken as error:
        raise LawBroken(f"seed {seed}: {error}") from error
    return world.steps


def main(steps: Annotated[int, typer.Option()] = 1_000_000, seed: Annotated[int, typer.Option()] = 0) -> None:
    """Runs histories of 500 steps until there are so many steps; ends with 1 and the history where a law breaks."""
    begin, done = time.perf_counter(), 0
    while done < steps:
        try:
            done += run(seed, 500)
        except LawBroken as error:
            sys.exit(str(error))
        seed += 1
    took = time.perf_counter() - begin
    print(f"{done} steps in {took:.1f} s, {done / took:.0f} a second: every law held")


if __name__ == "__main__":
    typer.run(main)
