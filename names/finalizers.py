"""Finalizers of our objects."""

PREFIX = "slipway.dev/"
"""A controller of the stack takes off those that begin so, and must not go first."""
DRAIN = f"{PREFIX}drain"
"""Of a node set: its nodes are drained."""
NODE_SETS = f"{PREFIX}node-sets"
"""Of a list of declared sets: sets that name it are still there."""
