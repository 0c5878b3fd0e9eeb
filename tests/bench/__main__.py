"""`make bench`: the figures of docs/explain/benchmarks.md, measured on this machine, printed one by one and written as JSON.

The cold one (`--cold`) runs in a fresh Debian of its own, with a fresh clone and empty caches: bare_machine.sh.
"""

from typing import Annotated

import typer

from tests.bench import plots
from tests.bench.catalogue import ALL, BARE
from tests.bench.results import FILE, measure_all


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Only these; all without it. Those of the dev stack need it up.")] = None,
    cold_too: Annotated[bool, typer.Option("--cold", help="Also the bare-machine figure; takes as long as it says.")] = False,
) -> None:
    """Measures, prints, writes; ends with 1 where a benchmark failed."""
    known = {benchmark.name: benchmark for benchmark in (*BARE, *ALL)}
    if unknown := [name for name in names or () if name not in known]:
        raise typer.BadParameter(f"there is no {' and no '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in names] if names else [*(BARE if cold_too else ()), *ALL]
    results = measure_all(chosen, FILE, lambda text: print(text, flush=True))
    if results.failed:
        print("\nFAILED:", *(f"  {name}: {error}" for name, error in results.failed.items()), sep="\n")
        raise typer.Exit(1)
    if not names:
        plots.draw(results.as_dict())


if __name__ == "__main__":
    typer.run(main)
