"""Slipway as a Pulumi plugin: programs in any language make a `SlurmCluster` through it. `__main__` is what the Pulumi CLI starts."""

__version__ = "0.2.0"
"""Of the package: the wheel and the schema both have it from here."""
