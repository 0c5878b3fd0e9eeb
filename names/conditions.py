"""Conditions that one of our programs writes and another reads."""

FILES_LIVE = "slipway.dev/FilesLive"
"""Of slurmctld's pod: whether slurmctld and its slurmds run with the files."""
