"""Starts the plugin. The Pulumi CLI runs this folder with the address of its engine, and reads the plugin's port from stdout.

The wheel's command `pulumi-resource-slipway` does the same.
"""

import sys
from pathlib import Path


def main() -> None:
    """Answers the engine until that ends the process."""
    # The plugin's packages are beside this folder, in a checkout as in the wheel.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from provider.plugin import serve

    serve(sys.argv[1:])


if __name__ == "__main__":
    main()
