"""Command line of the local cluster: `python -m local up|down|status|load-image|kubectl`, and the two verbs of `make up`."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer
from rich.console import Console
from rich.markup import escape

from local import cluster, layout, quickstart
from local.commands import LocalError, unforeseen

ROOT = Path(__file__).parents[1]
PATHS = layout.find_paths(ROOT)

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()


@app.command()
def up() -> None:
    """Make a Kubernetes of three nodes on this machine, or complete one that is there."""
    cluster.up(PATHS, console)


@app.command()
def down(
    *,
    any_checkout: Annotated[
        bool, typer.Option("--any-checkout", help="Also a cluster that another checkout made on this machine.")
    ] = False,
) -> None:
    """End what `up` started and remove it, volumes of the StorageClass `local-path` included. Host paths and built programs stay."""
    cluster.down(PATHS, console, any_checkout=any_checkout)


@app.command()
def status() -> None:
    """Show what runs. Exit code 1 when the cluster is not up."""
    health = cluster.health(PATHS)
    for name, alive in health.programs.items():
        console.print(f" {'[green]✓[/]' if alive else '[red]✗ ended:[/]'} {name}", highlight=False)
    if health.nodes is None:
        console.print(" [red]✗[/] no answer from the API server" if health.programs else " The local cluster is down.", highlight=False)
    for name, ready in (health.nodes or {}).items():
        console.print(f" {'[green]✓[/]' if ready else '[red]✗ not Ready:[/]'} node {name}", highlight=False)
    if not health.is_up:
        raise typer.Exit(1)


@app.command()
def programs() -> None:
    """Build the programs of the cluster; `up` builds what is not there yet."""
    cluster.build_programs(PATHS, console)


@app.command("load-image")
def load_image(
    archives: Annotated[list[Path], typer.Argument(help="Docker archives, or OCI layouts in a tar.", metavar="ARCHIVE...")],
    files: Annotated[
        Path | None, typer.Option(help="JSON of further files that the images have here: text by path from their root")
    ] = None,
) -> None:
    """Bring images to every node."""
    added = _read_files(files) if files else {}
    for archive in archives:
        cluster.load_image(archive, PATHS, console, added)


def _read_files(file: Path) -> dict[str, str]:
    try:
        texts = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise LocalError(f"--files {file}: {error}") from None
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in cast("dict[str, object]", texts).values()):
        raise LocalError(f"--files {file} must be a JSON object of path: content")
    return cast("dict[str, str]", texts)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def kubectl(context: typer.Context) -> None:
    """Run kubectl against the local cluster: `python -m local kubectl -- get pods -A`."""
    program = PATHS.bin / "kubectl"
    if not program.exists():
        raise LocalError("the local cluster is down; start it with: python -m local up")
    os.execv(program, ["kubectl", *quickstart.local_target(PATHS).where, *context.args])  # noqa: S606 (becomes kubectl)


@app.command()
def prepare() -> None:
    """Build the images, make the cluster, bring the images to every node: what a stack needs."""
    quickstart.prepare()


@app.command("quickstart")
def run_quickstart(
    key: Annotated[Path, typer.Option(help="Private ssh key of the stack's user.")],
    stack: Annotated[str, typer.Option(help="Stack to deploy.")] = "dev",
    context: Annotated[str | None, typer.Option(help="A cluster of your own, by its kubeconfig context; default: the local one.")] = None,
    registry: Annotated[
        str | None, typer.Option(help="Where a cluster of your own pulls the images from: they are built here and pushed there.")
    ] = None,
    plain_http: Annotated[bool, typer.Option("--plain-http", help="That registry speaks HTTP only.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, not even before data is deleted.")] = False,
    options: Annotated[list[str] | None, typer.Argument(help="After --: further options of `slipway up`.")] = None,
) -> None:
    """What `make up` runs: prepare, deploy, smoke jobs over ssh, how to log in."""
    more = [*(["--yes"] if yes else []), *(options or [])]
    if context is None and registry is None:
        quickstart.prepare()
        target = quickstart.local_target(PATHS)
    elif context is None:
        raise LocalError("REGISTRY is for a cluster of your own: name it by CONTEXT as well. The local one needs no registry.")
    else:
        target = quickstart.own_target(context, PATHS)
        more += quickstart.push(registry, plain_http) if registry else []
    quickstart.quickstart(console, stack, target, more, key)


def main() -> None:
    """Runs a verb. A failure ends in one message and an exit code, never in a stack trace."""
    try:
        app()
    except quickstart.StepFailedError as error:
        _fail(str(error), error.code)
    except LocalError as error:
        _fail(str(error))
    except Exception as error:
        _fail(unforeseen(error))


def _fail(message: str, code: int = 1) -> NoReturn:
    Console(stderr=True).print(f"[red]slipway:[/] {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
