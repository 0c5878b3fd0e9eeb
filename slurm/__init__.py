"""Slurm's own vocabulary: node states, reasons, hostlists and what its commands print. Pure, but for `commands`, which runs them, and
`signals`, by which programs wait, and `processes`, which reads those of a pod.

It needs Python's own library alone: controllers, health checks, workers' programs and slurmctld's sidecar import it, in pods too.
"""
