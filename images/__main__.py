"""`python -m images build|tag|archive|push`: builds, names and pushes the images. `settings` prints what a root needs of this machine.

Steps go to stderr, the answer to stdout.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from configs.images import reference
from images import machine, registries, store
from images.build import build
from images.steps import BuildError, unforeseen

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Build the container images; unchanged inputs build nothing.")
console = Console(stderr=True)

Name = Annotated[str, typer.Argument(help="the image: a folder here with a Dockerfile")]
Names = Annotated[list[str] | None, typer.Argument(help="the images: folders here with a Dockerfile; default: slurm", metavar="NAME...")]


@app.command("build")
def build_image(
    names: Names = None,
    output: Annotated[Path | None, typer.Option(help="also put the archive here; for one image")] = None,
    mirror: Annotated[str | None, typer.Option(help="Debian mirror for the base; default: registry, else the machine's own mirror")] = None,
) -> None:
    """Build the images that the cache lacks; print their full references."""
    chosen = _known(names)
    if output is not None and len(chosen) > 1:
        console.print("[red]images:[/] --output is for one image: give one name, or leave --output out", highlight=False)
        raise typer.Exit(2)
    for name in chosen:
        try:
            archive = build(name, console, mirror)
        except BuildError as error:
            console.print(f"[red]images:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from None
        if output is not None:
            store.copy(archive, output)
        print(reference(name, store.ROOT))


@app.command()
def tag(name: Name = "slurm") -> None:
    """Print the full reference that the present content has."""
    _known([name])
    print(reference(name, store.ROOT))


@app.command("archive")
def archive_path(names: Names = None) -> None:
    """Print the paths of built archives; fail when one is not built."""
    paths = {name: store.archive(name) for name in _known(names)}
    if missing := [name for name, path in paths.items() if not path.exists()]:
        message = f"not built from their files as they are now: {', '.join(missing)}; run: python -m images build {' '.join(missing)}"
        console.print(f"[red]images:[/] {message}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)
    print(*paths.values(), sep="\n")


@app.command()
def push(
    registry: Annotated[str, typer.Argument(help="where to: host, or host/path, such as registry.example/team")],
    plain_http: Annotated[bool, typer.Option("--plain-http", help="the registry speaks HTTP only: for one on your own network")] = False,
    record: Annotated[Path | None, typer.Option(help="also write them here with their digests, for the wheel of a release")] = None,
) -> None:
    """Build every image where the cache lacks it, and push them; print the lines of a stack file that take them from there.

    Credentials are skopeo's: `skopeo login REGISTRY` before, or `docker login`.
    """
    pushed: dict[str, str] = {}
    digests: dict[str, str] = {}
    try:
        registries.check(registry)
        if record is not None and not record.parent.is_dir():
            raise BuildError(f"--record {record}: there is no folder {record.parent}. Make it first.")
        for name in store.names():
            archive = build(name, console)
            pushed[name] = registries.pushed_reference(reference(name, store.ROOT), registry)
            digests[name] = registries.push(archive, pushed[name], console, plain_http)
    except BuildError as error:
        console.print(f"[red]images:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    if record is not None:
        record.write_text(json.dumps({name: f"{target}@{digests[name]}" for name, target in pushed.items()}, indent=2) + "\n")
    print("images:", *(f"  {name}: {target}" for name, target in pushed.items()), sep="\n")


@app.command()
def settings(no_proxy: Annotated[str, typer.Option(help="what is asked without the machine's proxy, beside what it says")] = "") -> None:
    """Print what a root needs of this machine so that packages can be installed in it: files by path, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            files = machine.read_machine(os.environ, no_proxy, Path(folder) / "log")
        except BuildError as error:
            console.print(f"[red]images:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from None
    for line in machine.find_unreachable(files):
        console.print(f"[yellow]images:[/] pods do not reach this machine's loopback: {escape(line)}", highlight=False, soft_wrap=True)
    print(json.dumps(files))


def _known(names: list[str] | None) -> list[str]:
    """The names as given, or the default. Ends the program for an unknown one."""
    chosen = names or ["slurm"]
    for name in chosen:
        if name not in store.names():
            console.print(f"[red]images:[/] no image is called {name!r}; there are: {', '.join(store.names())}", highlight=False)
            raise typer.Exit(2)
    return chosen


def main() -> None:
    """Runs a verb. A failure ends in one message and exit code 1, never in a stack trace: a file may vanish while it is read."""
    try:
        app(prog_name="python -m images")
    except Exception as error:
        console.print(f"[red]images:[/] {escape(unforeseen(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
