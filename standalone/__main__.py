"""`python -m standalone`: see cli.py."""

from standalone.cli import main

main()
