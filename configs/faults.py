"""Placeholder until the real one lands (a helper is writing it)."""


class ConfigFaults(Exception):  # noqa: N818
    """All mistakes."""
