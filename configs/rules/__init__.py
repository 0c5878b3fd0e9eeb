"""Checks across the parts of a cluster, a topic a file: pure functions from parts to faults. `cluster` puts them together."""
