"""How long tests on real programs wait."""

PATIENCE = 3
"""Deadlines are for a machine with little else to do; this many times as long is waited on one that has."""
