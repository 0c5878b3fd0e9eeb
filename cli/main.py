"""The verbs of `slipway`: options to calls, errors to exit code 1."""

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
Timeout = Annotated[float, typer.Option(help="Seconds to wait until all is ready (or gone).")]
_SETS = "Sets one config value, for instance cluster.nodeSets[0].size=3. Repeatable."

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Slurm on Kubernetes: one stack file for a whole cluster.")

Purpose = Literal["Look", "Change", "Care", "Develop"]
"""The groups of `slipway --help`."""


@dataclass(frozen=True)
class Given:
    """The values of the options that most verbs share."""

    project: project.Project
    where: Where


def _given(
    stack: Annotated[str, typer.Option("--stack", "-s", help="The stack: Pulumi.<stack>.yaml.")],
    config: Annotated[list[str] | None, typer.Option("--config", "-c", metavar="KEY.PATH=VALUE", help=_SETS)] = None,
    config_file: Annotated[Path | None, typer.Option("--config-file", help="Another file in place of Pulumi.<stack>.yaml.")] = None,
    root: Annotated[Path, typer.Option("--root", "-C", help="The project: where Pulumi.yaml is.")] = Path(),
    context: Annotated[str | None, typer.Option(help="kubeconfig context; default: the stack's own (kubernetes.context).")] = None,
    kubeconfig: Annotated[
        str | None, typer.Option(help="kubeconfig file; default: KUBECONFIG, or the local cluster's for its context.")
    ] = None,
    kubectl: Annotated[str | None, typer.Option("--kubectl", hidden=True, help="Not needed any more.")] = None,  # noqa: ARG001
) -> Given:
    return Given(project.load(root, stack, tuple(config or ()), config_file), Where(kubeconfig, context))


def _verb(name: str, purpose: Purpose) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a verb with its own options and, where it takes `given`, those of `_given`. Its docstring is the verb's help; the
    list of verbs has the first sentence."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function).parameters
        shared: Mapping[str, inspect.Parameter] = inspect.signature(_given).parameters if "given" in own else {}
        options = {key: each for key, each in {**shared, **own}.items() if key != "given"}

        def run(**values: Any) -> None:
            given = [_given(**{key: values.pop(key) for key in shared})] if shared else []
            function(*given, **values)

        run.__annotations__ = {key: each.annotation for key, each in options.items()}
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options.values()]
        cast(Any, run).__signature__ = inspect.Signature(parameters)
        text = " ".join((function.__doc__ or "").split())
        app.command(name, rich_help_panel=purpose, help=text, short_help=text.partition(". ")[0].rstrip("."))(run)
        return function

    return register


@functools.cache
def shared_screen() -> Screen:
    """The one screen of the process: what a verb hides stays hidden in its error too."""
    return Screen()


Json = Annotated[Path | None, typer.Option("--json", help="Also write the plan, its changes and their story as JSON.")]
JsonInstead = Annotated[Path | None, typer.Option("--json", help="Write JSON to this file and print nothing else; - is standard output.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Also write the story as Markdown, for a comment on a change.")]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="End with 0 if nothing changes, 2 if something does, 3 if that is dangerous; 1 is an error.")
]
CheckWith = Annotated[
    str | None,
    typer.Option(
        "--check-with", metavar="RUNTIME", help="docker, podman or nerdctl, which has to have the image. Default: any that has it."
    ),
]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Do not have slurmctld read Slurm's files in a container.")]


@_verb("preview", "Look")
def preview(
    given: Given,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no cluster: compare with the saved plan.")] = False,
    against: Annotated[
        Path | None, typer.Option("--against", help="Compare with this plan, which --json wrote, instead of the saved one; with --offline.")
    ] = None,
    require_cluster: Annotated[
        bool, typer.Option("--require-cluster", help="Fail where the cluster does not answer, instead of comparing with the saved plan.")
    ] = False,
    save: Annotated[bool, typer.Option("--save", help="Save the plan for later previews without a cluster.")] = False,
    json_file: Json = None,
    markdown_file: Markdown = None,
    exit_code: ExitCode = False,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="As if `up` took fields over from other managers.")] = False,
    check_with: CheckWith = None,
    no_check: NoCheck = False,
) -> None:
    """Shows what `up` would change, and what becomes of running jobs. Marks: + create, ~ update, +- replace, - delete. Also runs the
    policies, shows rendered files line by line and what each change of Slurm's configuration needs, and has slurmctld read its files, if
    its image is at hand."""
    screen = shared_screen()
    _refuse_stdout(json_file)
    if against and not offline:
        raise SlipwayError("--against names a saved plan, and a cluster is asked unless --offline is given. Give both, or neither.")
    look = previews.look(screen, given.project, None if offline else given.where, force_conflicts, against, require_cluster)
    plan, outlook = look.plan, look.outlook
    screen.say(f"{plan.project}/{plan.stack}, compared with {look.against}\n", "bold")
    show.tree(screen, plan.resources, outlook.changes, outlook.gone)
    screen.warn(*left_as_they_are(outlook.objects), *look.advice)
    story = look.story()
    preview_output.tell(screen, story)
    counted = show.counts(outlook.counted)
    screen.say(f"\n{'Nothing to change: ' if show.is_quiet(outlook.counted) else ''}{counted}", "bold")
    checks = [] if no_check else preview_output.check(screen, [each.inputs for each in plan.resources if each.is_object], check_with)
    if save:
        stacks.save_plan(given.project, plan)
    changes = [_change_json(change) for change in outlook.counted]
    whole = {**as_json(plan), "changes": changes, "advice": list(look.advice), "check": config_check.as_json(checks)}
    title = f"{plan.project}/{plan.stack}"
    preview_output.write(screen, story, title, preview_output.with_words(counted, checks), whole, json_file, markdown_file, look.advice)
    preview_output.end(story, checks, exit_code)


def _refuse_stdout(json_file: Path | None) -> None:
    if str(json_file) == json_files.STDOUT:
        raise SlipwayError("--json -: standard output has the preview. Name a file.")


def _say_recovered(screen: Screen, read: stacks.Stack) -> None:
    screen.warn(*recovery.explained(read.recovered, read.home.keeper))


def _change_json(change: Change) -> dict[str, Any]:
    differences = [{"path": list(each.path), "old": masked(each.old), "new": masked(each.new)} for each in change.differences]
    return {"op": change.op, "type": change.type, "name": change.name, "urn": change.urn, "differences": differences, "note": change.note}


@_verb("explain", "Look")
def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `pulumi preview --json` printed; - reads standard input.")],
    offline: Annotated[bool, typer.Option("--offline", help="Ask no cluster for its jobs.")] = False,
    context: Annotated[str | None, typer.Option(help="kubeconfig context; default: the current one.")] = None,
    kubeconfig: Annotated[str | None, typer.Option(help="kubeconfig file; default: KUBECONFIG.")] = None,
    json_file: Json = None,
    markdown_file: Markdown = None,
    exit_code: ExitCode = False,
    check_with: CheckWith = None,
    no_check: NoCheck = False,
) -> None:
    """Shows the same for a preview of the Pulumi CLI. What changes in Slurm and what that needs, and what becomes of pods and jobs. With
    --show-sames in that preview, slurmctld reads its files, too, if its image is at hand."""
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
        bool, typer.Option("--show-secrets", help="With the random values kept in the cluster, as plain YAML: never commit that.")
    ] = False,
) -> None:
    """Prints the manifests as YAML, in dependency order, for kubectl, Argo CD or Flux. Objects that hold secrets are left out and named."""
    screen = shared_screen()
    if show_secrets:
        read = stacks.read(given.project, given.where, screen, for_real=False)
        recovery.refuse_unread(read.recovered, read.documents, read.home.keeper)
        if new := read.fresh.keys() - read.recovered.values.keys():
            names = ", ".join(sorted(new))
            raise SlipwayError(f"These random values are not made yet; the first `up` makes and keeps them: {names}")
        plan = read.plan
    else:
        plan = record.record(given.project).plan
    for document in render.documents(plan):
        if document.has_secrets and not show_secrets:
            sys.stdout.write(f"---\n# {document.key} holds secrets and is left out: `up` makes it, or see --show-secrets.\n")
        else:
            sys.stdout.write("---\n" + render.yaml_text(document.manifest))


@_verb("up", "Change")
def up(
    given: Given,
    timeout: Timeout = 300,
    force_conflicts: Annotated[bool, typer.Option("--force-conflicts", help="Take fields over from other managers.")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Take over objects that exist and are not this stack's.")] = False,
    yes: Yes = False,
    ignore_missing: Annotated[bool, typer.Option("--ignore-missing", help="Begin although nodes, images or classes are missing.")] = False,
) -> None:
    """Applies the stack, prunes what is no longer declared, waits until all is ready. Refuses what the policies refuse. Asks once in a
    cluster that is not the local one, and before it deletes data or ends running jobs."""
    screen, begin = shared_screen(), time.monotonic()
    read = stacks.read(
        given.project, given.where, screen, for_real=True, check=lambda plan: screen.warn(*policy.enforce(given.project, plan))
    )
    screen.tick(f"{len(read.documents)} objects declared for namespace {read.home.namespace}, {read.home.api}", begin)
    is_local = questions.ask(screen, read, given.project.root, "up", yes)
    _say_recovered(screen, read)
    with interruption.stoppable():
        agree = functools.partial(questions.ask_for_losses, screen, read, yes)
        outlook = deploy.up(read, screen, timeout, force_conflicts, adopt, agree, must_fit=not is_local and not ignore_missing)
    stacks.save_plan(given.project, read.plan)
    screen.say(f"{show.counts(outlook.counted, is_done=True)}  ({time.monotonic() - begin:.1f} s)", "bold")
    for name, value in sorted(masked(read.plan.outputs).items()):
        screen.say(f"  {name}: {value}")


@_verb("destroy", "Change")
def destroy(
    given: Given,
    timeout: Timeout = 600,
    yes: Yes = False,
) -> None:
    """Deletes all objects of the stack. Asks, and refuses where there is no terminal to ask at; refuses, by name, when one is protected."""
    screen = shared_screen()
    read = stacks.read(given.project, given.where, screen, for_real=False)
    questions.ask(screen, read, given.project.root, "destroy", yes)
    with interruption.stoppable():
        removal.destroy(read, screen, timeout)
    stacks.plan_file(given.project).unlink(missing_ok=True)


@_verb("status", "Look")
def status(
    given: Given,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and look again every two seconds; Ctrl-C ends it.")] = False,
    json_file: JsonInstead = None,
) -> None:
    """Shows a live cluster at a glance. Node sets, nodes out of service and why, the queue, checks, backups, the age of each reading."""
    api, namespace = login.connect(given.project, given.where)
    live.show(shared_screen(), api, namespace, watch, json_file)


@_verb("maintenance", "Care")
def maintenance_(
    given: Given,
    reservation: Annotated[str | None, typer.Option(help="A reservation that Slurm has; instead of --nodes and --start.")] = None,
    nodes: Annotated[str | None, typer.Option(help="The nodes, as Slurm writes them: gpu-[0-3].")] = None,
    start: Annotated[str | None, typer.Option(help="When it starts: 2026-12-01T10:00, in UTC unless an offset follows.")] = None,
    duration: Annotated[int, typer.Option(help="Minutes.")] = 60,
    json_file: JsonInstead = None,
) -> None:
    """Shows what becomes of running jobs in a maintenance window. Each ends before, is warned and requeued, or runs on. Changes nothing;
    with --nodes and --start, prints the command that makes the reservation."""
    wish = maintenance.Wish(reservation, nodes, start, duration)
    maintenance.check(wish, time.time())
    api, namespace = login.connect(given.project, given.where)
    met = maintenance.preview(api, namespace, wish)
    if json_file:
        json_files.write(json_file, maintenance.as_json(met))
    else:
        print(*maintenance.lines(met, time.time()), sep="\n")


User = Annotated[str | None, typer.Option(help="Whose jobs they are. Default: the first of login.users who has a private key here.")]
SshKey = Annotated[Path | None, typer.Option("--key", help="The user's private ssh key. Default: beside one of their sshKeyFiles.")]


@_verb("check", "Care")
def check_(
    given: Given,
    user: User = None,
    key: SshKey = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait until the jobs have ended.")] = 300,
    json_file: JsonInstead = None,
) -> None:
    """Runs small jobs on a live cluster as a user does. Over ssh: one on each node set, MPI, GPUs, a package, accounting. Prints what
    works, and a remedy for what does not; then the exit code is 1. Jobs and files of its own are removed."""
    screen = shared_screen()
    json_files.refuse_unwritable(json_file)
    # A spinner beside JSON on standard output would spoil that, where colours are forced.
    waiting = contextlib.nullcontext() if json_file else screen.waiting("jobs on the cluster")
    with login.open_login(given.project, given.where, user, key) as way, waiting:
        rows = smoke.check(way, timeout)
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
    command: Annotated[list[str] | None, typer.Argument(help="After --: a command to run there instead of a shell.")] = None,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the ssh command instead.")] = False,
) -> None:
    """Logs in to the cluster's login node."""
    with login.open_login(given.project, given.where, user, key) as way:
        if is_printed:
            print(*way.instructions, sep="\n")
            return
        words = [*way.command(*(["BatchMode=yes"] if command else [])), *([" ".join(command)] if command else [])]
        raise typer.Exit(subprocess.run(words, check=False).returncode)


@_verb("ci", "Develop")
def ci_(
    base: Annotated[str, typer.Option(help="The branch or commit to compare with: where HEAD left it.")] = "origin/main",
    stack: Annotated[list[str] | None, typer.Option("--stack", "-s", help="Only this stack. Repeatable; default: all.")] = None,
    config: Annotated[list[str] | None, typer.Option("--config", "-c", metavar="KEY.PATH=VALUE", help=_SETS)] = None,
    root: Annotated[Path, typer.Option("--root", "-C", help="The project: where Pulumi.yaml is.")] = Path(),
    output: Annotated[Path, typer.Option(help="The folder for the comment and the plans.")] = Path(".slipway/ci"),
    live: Annotated[bool, typer.Option("--live", help="Compare with the cluster instead, and show what becomes of its jobs.")] = False,
) -> None:
    """Reviews a change of the repository. Writes mistakes, policies, and what the change would do as a comment in Markdown. Ends with 0 if
    nothing changes, 2 if something does, 3 if that is dangerous, 1 for mistakes."""
    raise typer.Exit(ci.run(root, base, stack or (), config or (), output, live))


def main(arguments: list[str] | None = None) -> None:
    """Runs one verb. What fails is printed, without a stack trace, and ends with exit code 1; Ctrl-C with 130."""
    run: Callable[..., Any] = app
    try:
        run(args=arguments, prog_name="slipway")
    except SlipwayError as error:
        shared_screen().fail(str(error))
        raise SystemExit(130 if isinstance(error, StoppedError) else 1) from None
    except Exception as error:
        shared_screen().fail(unforeseen(error))
        raise SystemExit(1) from None
