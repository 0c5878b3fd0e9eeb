"""Starts the CrossGuard pack: the Pulumi CLI runs this folder (`pulumi preview --policy-pack policies`), and reads from stdout the port
that the pack answers on."""

import sys
from pathlib import Path


def main() -> None:
    """Answers the engine until that ends the process."""
    # The rules lie in this folder, in a checkout as in the wheel. As modules of their own they could hide those of other packages.
    folder = Path(__file__).resolve().parent
    sys.path[:] = [str(folder.parent), *(path for path in sys.path if Path(path).resolve() != folder)]
    from policies.pack import serve

    serve()


if __name__ == "__main__":
    main()
