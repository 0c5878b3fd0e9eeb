"""Slurm's vocabulary: node states, reasons, hostlists and the output of its commands. Uses only Python's standard library: pods import it
too.

Pure, with exceptions. `commands` runs commands, programs wait by `signals`, and `processes` reads a pod's processes. `pump`, `logs`,
`listen`, `turns`, `web` and `collector` write logs, listen and send reports.
"""
