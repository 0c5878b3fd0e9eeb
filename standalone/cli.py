"""`python -m standalone preview|render|up|destroy`: options to calls, errors to exit code 1. No decision is made here."""

import contextlib
import functools
import json
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, Any

import typer

from standalone import deploy, project, record, removal, render, show
from standalone import stack as stacks
from standalone.changes import consequences, left_as_they_are
from standalone.faults import StandaloneError, StoppedError, UnreachableError
from standalone.plan import Change, Plan, as_json, masked
from standalone.stack import Outlook, Where

Stack = Annotated[str, typer.Option("--stack", "-s", help="The stack: Pulumi.<stack>.yaml.")]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-c", metavar="KEY.PATH=VALUE", help="Sets one config value, for instance cluster.nodeSets[0].size=3. Repeatable."
    ),
]
ConfigFile = Annotated[Path | None, typer.Option("--config-file", help="Another file in place of Pulumi.<stack>.yaml.")]
Root = Annotated[Path, typer.Option("--root", "-C", help="The project: where Pulumi.yaml is.")]
Context = Annotated[str | None, typer.Option(help="kubeconfig context; default: the stack's own (kubernetes.context).")]
Kubeconfig = Annotated[str | None, typer.Option(help="kubeconfig file; default: KUBECONFIG, or the local cluster's for its context.")]
KubectlPath = Annotated[str | None, typer.Option("--kubectl", help="kubectl; default: KUBECTL, .slipway/bin/kubectl, PATH.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait until all is ready (or gone).")]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@functools.cache
def shared_screen() -> show.Screen:
    """The one screen of the process: what a verb hides stays hidden in its error too."""
    return show.Screen()


@app.command()
def preview(
    stack: Stack,
    config: Config = None,
    config_file: ConfigFile = None,
    root: Root = Path(),
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    kubectl: KubectlPath = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no cluster: compare with the saved plan.")] = False,
    save: Annotated[bool, typer.Option("--save", help="Save the plan for later previews without a cluster.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the plan and its changes as JSON.")] = None,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="As if `up` took fields over from other managers.")] = False,
) -> None:
    """Shows what `up` would do: + create, ~ update, +- replace, - delete; rendered files line by line."""
    screen = shared_screen()
    found = project.load(root, stack, tuple(config or ()), config_file)
    plan, outlook, against = _outlook(screen, found, None if offline else Where(kubectl, kubeconfig, context), force_conflicts)
    screen.say(f"{plan.project}/{plan.stack}, compared with {against}\n", "bold")
    _show(screen, plan, outlook)
    if save:
        stacks.save_plan(found, plan)
    if json_file:
        changes = [_change_json(one) for one in outlook.counted]
        json_file.write_text(screen.hidden(json.dumps({**as_json(plan), "changes": changes}, indent=2, sort_keys=True)) + "\n")


def _outlook(screen: show.Screen, found: project.Project, where: Where | None, force_conflicts: bool) -> tuple[Plan, Outlook, str]:
    """The plan, what would change, and what it was compared with: the cluster if it answers, else the saved plan."""
    if where:
        try:
            read = stacks.read(found, where, screen, for_real=False)
            return read.plan, stacks.outlook(read, force_conflicts), str(read.home.kubectl)
        except UnreachableError as error:
            screen.say(f"warning: {error}", "yellow")
    recording = record.record(found)
    stacks.hide(screen, recording.plan)
    for line in () if where else recording.messages:
        screen.say(f"warning: {line}", "yellow")
    saved = stacks.load_plan(found)
    against = "the plan saved last" if saved else "nothing: no plan is saved yet"
    return recording.plan, stacks.saved_outlook(recording.plan, saved), against


def _show(screen: show.Screen, plan: Plan, outlook: Outlook) -> None:
    show.tree(screen, plan.resources, outlook.changes, outlook.gone)
    for line in left_as_they_are(outlook.objects):
        screen.say(f"warning: {line}", "yellow")
    if said := consequences(outlook.objects):
        screen.say("\nWhat happens to running pods and jobs:")
        for line in said:
            screen.say(f"  {line}")
    quiet = show.is_quiet(outlook.counted)
    screen.say(f"\n{'Nothing to change: ' if quiet else ''}{show.counts(outlook.counted)}", "bold")


def _change_json(one: Change) -> dict[str, Any]:
    differences = [{"path": list(each.path), "old": masked(each.old), "new": masked(each.new)} for each in one.differences]
    return {"op": one.op, "type": one.type, "name": one.name, "urn": one.urn, "differences": differences, "note": one.note}


@app.command("render")
def render_(
    stack: Stack,
    config: Config = None,
    config_file: ConfigFile = None,
    root: Root = Path(),
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    kubectl: KubectlPath = None,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="With the random values kept in the cluster, as plain YAML: never commit that.")
    ] = False,
) -> None:
    """Prints the manifests as YAML, in dependency order, for kubectl, Argo CD or Flux. Objects that hold secrets are left out and named."""
    screen = shared_screen()
    found = project.load(root, stack, tuple(config or ()), config_file)
    if show_secrets:
        read = stacks.read(found, Where(kubectl, kubeconfig, context), screen, for_real=False)
        if read.fresh:
            names = ", ".join(sorted(read.fresh))
            raise StandaloneError(f"These random values are not made yet; the first `up` makes and keeps them: {names}")
        plan = read.plan
    else:
        plan = record.record(found).plan
    for one in render.documents(plan):
        if one.has_secrets and not show_secrets:
            sys.stdout.write(f"---\n# {one.key} holds secrets and is left out: `up` makes it, or see --show-secrets.\n")
        else:
            sys.stdout.write("---\n" + render.yaml_text(one.manifest))


@contextlib.contextmanager
def _stoppable() -> Generator[None]:
    """Ctrl-C while the cluster is being changed: says what it left."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError("Interrupted. What was done stays; the same command finishes it.") from None


@app.command()
def up(
    stack: Stack,
    config: Config = None,
    config_file: ConfigFile = None,
    root: Root = Path(),
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    kubectl: KubectlPath = None,
    timeout: Timeout = 300,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="Take fields over from other managers.")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Take over objects that exist and are not this stack's.")] = False,
) -> None:
    """Applies the stack, prunes what is no longer declared, and waits until all is ready."""
    screen, begin = shared_screen(), time.monotonic()
    found = project.load(root, stack, tuple(config or ()), config_file)
    read = stacks.read(found, Where(kubectl, kubeconfig, context), screen, for_real=True)
    screen.tick(f"{len(read.documents)} objects declared for namespace {read.home.namespace}, {read.home.kubectl}", begin)
    with _stoppable():
        outlook = deploy.up(read, screen, timeout, force_conflicts, adopt)
    stacks.save_plan(found, read.plan)
    screen.say(f"{show.counts(outlook.counted, is_done=True)}  ({time.monotonic() - begin:.1f} s)", "bold")
    for name, value in sorted(masked(read.plan.outputs).items()):
        screen.say(f"  {name}: {value}")


@app.command()
def destroy(
    stack: Stack,
    config: Config = None,
    config_file: ConfigFile = None,
    root: Root = Path(),
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    kubectl: KubectlPath = None,
    timeout: Timeout = 600,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Deletes all objects of the stack. Refuses, by name, when one is protected."""
    screen = shared_screen()
    found = project.load(root, stack, tuple(config or ()), config_file)
    read = stacks.read(found, Where(kubectl, kubeconfig, context), screen, for_real=False)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Destroy {read.plan.project}/{read.plan.stack} in {read.home.kubectl}?", abort=True)
    with _stoppable():
        removal.destroy(read, screen, timeout)
    stacks.plan_file(found).unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs one verb. A StandaloneError is printed as it is and ends with exit code 1; Ctrl-C with 130."""
    run: Callable[..., Any] = app
    try:
        run(args=arguments, prog_name="python -m standalone")
    except StandaloneError as error:
        shared_screen().fail(str(error))
        raise SystemExit(130 if isinstance(error, StoppedError) else 1) from None
