"""Asks whoever runs a verb before it changes the cluster, deletes data or ends jobs. Thin: consent decides whether to ask."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import typer

from engine import consent
from engine import stack as stacks
from engine.faults import SlipwayError
from engine.screen import Screen


def ask(screen: Screen, read: stacks.Stack, root: Path, verb: Literal["up", "destroy"], yes: bool) -> bool:
    """Says which cluster it is, and asks where `consent` wants an answer. True for the local cluster. Raises SlipwayError or Abort."""
    target, stack = read.home.api.target, f"{read.plan.project}/{read.plan.stack}"
    is_local = consent.is_local(root, read.home.api.where.kubeconfig, target)
    now = consent.Situation(verb, yes, sys.stdin.isatty(), is_local, read.kept.is_known)
    screen.say(f" · {target}, namespace {read.home.namespace}", "dim")
    _answered(now, read, f"{verb.capitalize()} {stack} there?")
    return is_local


def ask_for_losses(screen: Screen, read: stacks.Stack, yes: bool, losses: tuple[str, ...], harms: tuple[str, ...]) -> None:
    """Says which data would go and which jobs would end, and asks. Raises SlipwayError or Abort."""
    now = consent.Situation("up", yes, sys.stdin.isatty(), is_local=True, is_known=True)
    if losses:
        screen.say(consent.loss_lines(losses), "yellow")
        _answered(replace(now, losses=losses), read, "Delete it?")
    if harms:
        screen.say(consent.harm_lines(harms), "yellow")
        _answered(replace(now, harms=harms), read, "End them?")


def _answered(now: consent.Situation, read: stacks.Stack, question: str) -> None:
    answer = consent.plan_question(now)
    if answer == "refuse":
        stack = f"{read.plan.project}/{read.plan.stack}"
        raise SlipwayError(consent.refusal(now, stack, read.home.api.target, read.home.namespace))
    if answer == "ask":
        typer.confirm(question, abort=True)
