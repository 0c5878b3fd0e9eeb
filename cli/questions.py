"""Asks the user before a command changes the cluster, deletes data or ends jobs. `consent` decides whether to ask."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import typer

from engine import consent
from engine import stack as stacks
from engine.faults import SlipwayError
from engine.screen import Screen


def ask(screen: Screen, stack: stacks.Stack, root: Path, verb: Literal["up", "destroy"], yes: bool) -> bool:
    """Names the cluster, and asks if needed. Returns True for the local cluster. Raises SlipwayError or Abort."""
    target, stack_name = stack.home.api.target, f"{stack.plan.project}/{stack.plan.stack}"
    is_local = consent.is_local(root, stack.home.api.where.kubeconfig, target)
    situation = consent.Situation(verb, yes, sys.stdin.isatty(), is_local, stack.kept.is_known)
    screen.say(f" · {target}, namespace {stack.home.namespace}", "dim")
    _answered(situation, stack, f"{verb.capitalize()} {stack_name} there?")
    return is_local


def ask_for_losses(screen: Screen, stack: stacks.Stack, yes: bool, losses: tuple[str, ...], harms: tuple[str, ...]) -> None:
    """Lists the data that would be deleted and the jobs that would end, and asks. Raises SlipwayError or Abort."""
    situation = consent.Situation("up", yes, sys.stdin.isatty(), is_local=True, is_known=True)
    if losses:
        screen.say(consent.loss_lines(losses), "yellow")
        _answered(replace(situation, losses=losses), stack, "Delete it?")
    if harms:
        screen.say(consent.harm_lines(harms), "yellow")
        _answered(replace(situation, harms=harms), stack, "End them?")


def _answered(situation: consent.Situation, stack: stacks.Stack, question: str) -> None:
    answer = consent.plan_question(situation)
    if answer == "refuse":
        stack_name = f"{stack.plan.project}/{stack.plan.stack}"
        raise SlipwayError(consent.refusal(situation, stack_name, stack.home.api.target, stack.home.namespace))
    if answer == "ask":
        typer.confirm(question, abort=True)
