"""Slurm's vocabulary: node states, reasons, hostlists and the output of its commands. Uses only Python's standard library: pods import it
too.

Pure, except `commands`, which runs commands, `signals`, by which programs wait, and `processes`, which reads a pod's processes.
"""
