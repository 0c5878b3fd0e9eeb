"""The commands of `slipway`: options become calls, and errors exit code 1."""

import contextlib
import functools
import inspect
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from cli import ci, config_check, interruption, json_files, maintenance, preview_output, questions, show
from cli.check import entry as login
from cli.check import run as smoke
from cli.status import live
from engine import deploy, policy, previews, project, record, recovery, removal, render
from engine import stack as stacks
from engine.changes import left_as_they_are
from engine.faults import SlipwayError, StoppedError, unforeseen
from engine.kubeconfig import Where
from engine.plan import Change, as_json, masked
from engine.screen import Screen

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait until everything is ready (or deleted).")]
_SETS = "Sets one config value, for instance cluster.nodeSets[0].size=3. Repeatable."

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Slurm on Kubernetes: one stack file for a whole cluster.")

Purpose = Literal["Look", "Change", "Care", "Develop"]
"""The groups of `slipway --help`."""


@dataclass(frozen=True)
class Given:
    """The values of the options that most commands share."""

    project: project.Project
    where: Where


def _given(
    stack: Annotated[str, typer.Option("--stack", "-s", help="The stack, as in Pulumi.<stack>.yaml.")],
    config: Annotated[list[str] | None, typer.Option("--config", "-c", metavar="KEY.PATH=VALUE", help=_SETS)] = None,
    config_file: Annotated[Path | None, typer.Option("--config-file", help="A file to use instead of Pulumi.<stack>.yaml.")] = None,
    root: Annotated[Path, typer.Option("--root", "-C", help="The project's folder, which contains Pulumi.yaml.")] = Path(),
    context: Annotated[str | None, typer.Option(help="kubeconfig context; default: the stack's own (kubernetes.context).")] = None,
    kubeconfig: Annotated[
        str | None, typer.Option(help="kubeconfig file; default: KUBECONFIG, or the local cluster's for its context.")
    ] = None,
) -> Given:
    return Given(project.load(root, stack, tuple(config or ()), config_file), Where(kubeconfig, context))


def _verb(name: str, purpose: Purpose) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function as a command with its own options and, if it takes `given`, those of `_given`. Its docstring is the help text;
    the list of commands shows its first sentence."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own_parameters = inspect.signature(function).parameters
        shared: Mapping[str, inspect.Parameter] = inspect.signature(_given).parameters if "given" in own_parameters else {}
        options = {key: parameter for key, parameter in {**shared, **own_parameters}.items() if key != "given"}

        def run(**values: Any) -> None:
            given = [_given(**{key: values.pop(key) for key in shared})] if shared else []
            function(*given, **values)

        run.__annotations__ = {key: parameter.annotation for key, parameter in options.items()}
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in options.values()]
        cast(Any, run).__signature__ = inspect.Signature(parameters)
        text = " ".join((function.__doc__ or "").split())
        app.command(name, rich_help_panel=purpose, help=text, short_help=text.partition(". ")[0].rstrip("."))(run)
        return function

    return register


@functools.cache
def shared_screen() -> Screen:
    """The one screen of the process, so that errors hide secrets too."""
    return Screen()


Json = Annotated[Path | None, typer.Option("--json", help="Also write the plan, its changes and their story to this JSON file.")]
JsonInstead = Annotated[Path | None, typer.Option("--json", help="Write JSON to this file and print nothing else; - is standard output.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Also write the story to this Markdown file, for a comment.")]
ExitCode = Annotated[
    bool,
    typer.Option("--exit-code", help="Exit with 0 if nothing changes, 2 if something does, 3 if a change is dangerous, 1 after an error."),
]
CheckWith = Annotated[
    str | None,
    typer.Option("--check-with", metavar="RUNTIME", help="docker, podman or nerdctl; it must have the image. Default: any that has it."),
]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Do not check Slurm's files with slurmctld in a container.")]


@_verb("preview", "Look")
def preview(
    given: Given,
    offline: Annotated[bool, typer.Option("--offline", help="Compare with the saved plan, without a cluster.")] = False,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare with this plan of --json instead of the saved one; needs --offline.")
    ] = None,
    require_cluster: Annotated[
        bool, typer.Option("--require-cluster", help="Fail if the cluster does not answer, instead of comparing with the saved plan.")
    ] = False,
    save: Annotated[bool, typer.Option("--save", help="Save the plan for later previews without a cluster.")] = False,
    json_file: Json = None,
    markdown_file: Markdown = None,
    exit_code: ExitCode = False,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="As if `up` took over fields from other managers.")] = False,
    check_with: CheckWith = None,
    no_check: NoCheck = False,
) -> None:
    """Shows what `up` would change, and what happens to running jobs. Marks: + create, ~ update, +- replace, - delete. Runs the
    policies. Shows rendered files line by line, and what each change of Slurm's configuration needs. Has slurmctld check its files if a
    container runtime has its image."""
    screen = shared_screen()
    _refuse_stdout(json_file)
    if against and not offline:
        raise SlipwayError("--against compares with a saved plan, so it needs --offline. Give both or neither.")
    look = previews.look(screen, given.project, None if offline else given.where, force_conflicts, against, require_cluster)
    plan, outlook = look.plan, look.outlook
    screen.say(f"{plan.project}/{plan.stack}, compared with {look.against}\n", "bold")
    show.tree(screen, plan.resources, outlook.changes, outlook.gone)
    screen.warn(*left_as_they_are(outlook.objects), *look.advice)
    story = look.story()
    preview_output.tell(screen, story)
    counted = show.counts(outlook.counted)
    screen.say(f"\n{'Nothing to change: ' if show.is_quiet(outlook.counted) else ''}{counted}", "bold")
    objects = [resource.inputs for resource in plan.resources if resource.is_object]
    checks = [] if no_check else preview_output.check(screen, objects, check_with)
    if save:
        stacks.save_plan(given.project, plan)
    changes = [_change_json(change) for change in outlook.counted]
    document = {**as_json(plan), "changes": changes, "advice": list(look.advice), "check": config_check.as_json(checks)}
    title = f"{plan.project}/{plan.stack}"
    preview_output.write(screen, story, title, preview_output.with_words(counted, checks), document, json_file, markdown_file, look.advice)
    preview_output.end(story, checks, exit_code)


def _refuse_stdout(json_file: Path | None) -> None:
    if str(json_file) == json_files.STDOUT:
        raise SlipwayError("--json -: standard output has the preview. Give a file.")


def _change_json(change: Change) -> dict[str, Any]:
    differences = [masked(vars(difference)) for difference in change.differences]
    return {"op": change.op, "type": change.type, "name": change.name, "urn": change.urn, "differences": differences, "note": change.note}


@_verb("explain", "Look")
def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The output of `pulumi preview --json`; - reads standard input.")],
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask a cluster for its jobs.")] = False,
    context: Annotated[str | None, typer.Option(help="kubeconfig context; default: the current one.")] = None,
    kubeconfig: Annotated[str | None, typer.Option(help="kubeconfig file; default: KUBECONFIG.")] = None,
    json_file: Json = None,
    markdown_file: Markdown = None,
    exit_code: ExitCode = False,
    check_with: CheckWith = None,
    no_check: NoCheck = False,
) -> None:
    """Explains a preview of the Pulumi CLI. Shows what changes in Slurm, what that needs, and what happens to pods and jobs. If that
    preview was made with --show-sames, slurmctld also checks its files if a container runtime has its image."""
    screen = shared_screen()
    _refuse_stdout(json_file)
    steps = previews.read_pulumi(file)
    previews.refuse_resizes(steps, None if offline else Where(kubeconfig, context))
    story = previews.story_of(steps, lambda: previews.jobs_of(steps, None if offline else Where(kubeconfig, context)))
    objects = [step for step in steps if not step.is_node_group]
    counted = show.counts([Change(step.op, step.kind, step.name) for step in objects])
    preview_output.tell(screen, story)
    screen.say(f"\nKubernetes objects: {counted}", "bold")
    checks = [] if no_check else preview_output.check(screen, [step.new for step in objects if step.op != "delete"], check_with)
    written = {"check": config_check.as_json(checks)}
    preview_output.write(screen, story, "pulumi preview", preview_output.with_words(counted, checks), written, json_file, markdown_file)
    preview_output.end(story, checks, exit_code)


@_verb("render", "Look")
def render_(
    given: Given,
    show_secrets: Annotated[
        bool,
        typer.Option("--show-secrets", help="Include secrets, with the random values from the cluster, as plain YAML. Never commit it."),
    ] = False,
) -> None:
    """Prints the manifests as YAML, in dependency order, for kubectl, Argo CD or Flux. Objects with secrets are listed but left out."""
    screen = shared_screen()
    if show_secrets:
        stack = stacks.read(given.project, given.where, screen, for_real=False)
        recovery.refuse_unread(stack.recovered, stack.documents, stack.home.keeper)
        if new := stack.fresh.keys() - stack.recovered.values.keys():
            names = ", ".join(sorted(new))
            raise SlipwayError(f"These random values do not exist yet; the first `up` creates them: {names}")
        plan = stack.plan
    else:
        plan = record.record(given.project).plan
    for document in render.documents(plan):
        if document.has_secrets and not show_secrets:
            sys.stdout.write(f"---\n# {document.key} holds secrets and is left out: `up` applies it, or use --show-secrets.\n")
        else:
            sys.stdout.write("---\n" + render.yaml_text(document.manifest))


@_verb("up", "Change")
def up(
    given: Given,
    timeout: Timeout = 300,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="Take over fields from other managers.")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Take over existing objects that do not belong to this stack.")] = False,
    yes: Yes = False,
    ignore_missing: Annotated[bool, typer.Option("--ignore-missing", help="Apply even if nodes, images or classes are missing.")] = False,
) -> None:
    """Applies the stack, prunes what is no longer declared, waits until all is ready. Stops if policies refuse the plan. Asks before the
    first `up` in a cluster that is not the local one, and before it deletes data or ends running jobs."""
    screen, started = shared_screen(), time.monotonic()
    stack = stacks.read(
        given.project, given.where, screen, for_real=True, check=lambda plan: screen.warn(*policy.enforce(given.project, plan))
    )
    screen.tick(f"{len(stack.documents)} objects declared for namespace {stack.home.namespace}, {stack.home.api}", started)
    is_local = questions.ask(screen, stack, given.project.root, "up", yes)
    screen.warn(*recovery.explained(stack.recovered, stack.home.keeper))
    with interruption.stoppable():
        agree = functools.partial(questions.ask_for_losses, screen, stack, yes)
        outlook = deploy.up(stack, screen, timeout, force_conflicts, adopt, agree, must_fit=not is_local and not ignore_missing)
    stacks.save_plan(given.project, stack.plan)
    screen.say(f"{show.counts(outlook.counted, is_done=True)}  ({time.monotonic() - started:.1f} s)", "bold")
    for name, value in sorted(masked(stack.plan.outputs).items()):
        screen.say(f"  {name}: {value}")


@_verb("destroy", "Change")
def destroy(
    given: Given,
    timeout: Timeout = 600,
    yes: Yes = False,
) -> None:
    """Deletes all objects of the stack. Asks first, and fails without a terminal unless --yes is given. Fails if an object is protected."""
    screen = shared_screen()
    stack = stacks.read(given.project, given.where, screen, for_real=False)
    questions.ask(screen, stack, given.project.root, "destroy", yes)
    with interruption.stoppable():
        removal.destroy(stack, screen, timeout)
    stacks.plan_file(given.project).unlink(missing_ok=True)


@_verb("status", "Look")
def status(
    given: Given,
    watch: Annotated[bool, typer.Option("--watch", help="Update every two seconds until Ctrl-C.")] = False,
    json_file: JsonInstead = None,
) -> None:
    """Shows a live cluster at a glance. Lists node sets, nodes out of service and why, the queue, checks, backups, ages of readings."""
    api, namespace = login.connect(given.project, given.where)
    live.show(shared_screen(), api, namespace, watch, json_file)


@_verb("maintenance", "Care")
def maintenance_(
    given: Given,
    reservation: Annotated[str | None, typer.Option(help="An existing reservation, instead of --nodes and --start.")] = None,
    nodes: Annotated[str | None, typer.Option(help="The nodes, as a Slurm hostlist: gpu-[0-3].")] = None,
    start: Annotated[str | None, typer.Option(help="The start, such as 2026-12-01T10:00, in UTC unless it has an offset.")] = None,
    duration: Annotated[int, typer.Option(help="The duration in minutes.")] = 60,
    json_file: JsonInstead = None,
) -> None:
    """Shows what happens to running jobs in a maintenance window. Each ends before, is warned and requeued, or runs on. Changes nothing;
    with --nodes and --start, prints the command that creates the reservation."""
    wish = maintenance.Wish(reservation, nodes, start, duration)
    maintenance.check(wish, time.time())
    api, namespace = login.connect(given.project, given.where)
    result = maintenance.preview(api, namespace, wish)
    if json_file:
        json_files.write(json_file, maintenance.as_json(result))
    else:
        print(*maintenance.lines(result, time.time()), sep="\n")


User = Annotated[str | None, typer.Option(help="The user to log in as. Default: the first of login.users with a private key here.")]
SshKey = Annotated[Path | None, typer.Option("--key", help="The user's private ssh key. Default: the one beside an sshKeyFile.")]


@_verb("check", "Care")
def check_(
    given: Given,
    user: User = None,
    key: SshKey = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait until the jobs have ended.")] = 300,
    json_file: JsonInstead = None,
) -> None:
    """Runs small jobs on a live cluster over ssh, like a user. Checks each node set, MPI, GPUs, a package and accounting. Prints a remedy
    for each check that fails; then the exit code is 1. Removes its jobs and files."""
    screen = shared_screen()
    json_files.refuse_unwritable(json_file)
    # A spinner beside JSON on standard output would spoil that, where colours are forced.
    waiting = contextlib.nullcontext() if json_file else screen.waiting("jobs on the cluster")
    with login.open_login(given.project, given.where, user, key) as session_login, waiting:
        rows = smoke.check(session_login, timeout)
    if json_file:
        json_files.write(json_file, show.checks_as_json(rows))
    else:
        show.checks(screen, rows)
    if failed := [row.title for row in rows if row.passed is False]:
        raise SlipwayError(f"These checks failed: {', '.join(failed)}.")


@_verb("ssh", "Care")
def ssh(
    given: Given,
    user: User = None,
    key: SshKey = None,
    command: Annotated[list[str] | None, typer.Argument(help="After --: a command to run instead of a shell.")] = None,
    is_printed: Annotated[bool, typer.Option("--print", help="Only print the ssh command.")] = False,
) -> None:
    """Logs in to the cluster's login node."""
    with login.open_login(given.project, given.where, user, key) as session_login:
        if is_printed:
            print(*session_login.instructions, sep="\n")
            return
        ssh_command = [*session_login.command(*(["BatchMode=yes"] if command else [])), *([" ".join(command)] if command else [])]
        raise typer.Exit(subprocess.run(ssh_command, check=False).returncode)


@_verb("ci", "Develop")
def ci_(
    base: Annotated[str, typer.Option(help="Compare with the commit where HEAD left this branch or commit.")] = "origin/main",
    stack: Annotated[list[str] | None, typer.Option("--stack", "-s", help="Only this stack. Repeatable; default: all.")] = None,
    config: Annotated[list[str] | None, typer.Option("--config", "-c", metavar="KEY.PATH=VALUE", help=_SETS)] = None,
    root: Annotated[Path, typer.Option("--root", "-C", help="The project's folder, which contains Pulumi.yaml.")] = Path(),
    output: Annotated[Path, typer.Option(help="The folder for the comment and the plans.")] = Path(".slipway/ci"),
    live: Annotated[bool, typer.Option("--live", help="Compare with the cluster instead, and show what happens to its jobs.")] = False,
) -> None:
    """Reviews a change of the repository. Writes a Markdown comment with mistakes, policies and the effects of the change. Exits with 0 if
    nothing changes, 2 if something changes, 3 if a change is dangerous, 1 for mistakes."""
    raise typer.Exit(ci.run(root, base, stack or (), config or (), output, live))


def main(arguments: list[str] | None = None) -> None:
    """Runs one command. Errors are printed without a stack trace and end with exit code 1; Ctrl-C with 130."""
    run: Callable[..., Any] = app
    try:
        run(args=arguments, prog_name="slipway")
    except SlipwayError as error:
        shared_screen().fail(str(error))
        raise SystemExit(130 if isinstance(error, StoppedError) else 1) from None
    except Exception as error:
        shared_screen().fail(unforeseen(error))
        raise SystemExit(1) from None
