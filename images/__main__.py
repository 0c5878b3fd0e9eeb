"""`python -m images build|tag|archive`: makes the images, names them, says where they are. Steps go to stderr, the answer to stdout."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from configs.images import reference
from images import store
from images.build import build
from images.steps import BuildError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Build the container images; unchanged inputs build nothing.")
console = Console(stderr=True)

Name = Annotated[str, typer.Argument(help="the image: a folder here with a Dockerfile")]


@app.command("build")
def build_image(
    name: Name = "slurm",
    output: Annotated[Path | None, typer.Option(help="also put the archive here")] = None,
    mirror: Annotated[str | None, typer.Option(help="Debian mirror for the base; default: registry, else the machine's own mirror")] = None,
) -> None:
    """Build the image where the cache lacks it; print its full reference."""
    _known(name)
    try:
        archive = build(name, console, mirror)
    except BuildError as error:
        console.print(f"[red]images:[/] {error}", highlight=False, markup=True, soft_wrap=True)
        raise typer.Exit(1) from None
    if output is not None:
        store.copy(archive, output)
    print(reference(name, store.ROOT))


@app.command()
def tag(name: Name = "slurm") -> None:
    """Print the full reference that the present content has."""
    _known(name)
    print(reference(name, store.ROOT))


@app.command("archive")
def archive_path(name: Name = "slurm") -> None:
    """Print the path of the built archive; fail when it is not built."""
    _known(name)
    path = store.archive(name)
    if not path.exists():
        console.print(f"[red]images:[/] {name} is not built; run: python -m images build {name}", highlight=False)
        raise typer.Exit(1)
    print(path)


def _known(name: str) -> None:
    if name not in store.names():
        console.print(f"[red]images:[/] no image is called {name!r}; there are: {', '.join(store.names())}", highlight=False)
        raise typer.Exit(2)


if __name__ == "__main__":
    app(prog_name="python -m images")
