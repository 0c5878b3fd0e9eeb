"""What runs beside a Slurm daemon in a pod: one folder a program, a pure `plan` and a thin `run`.

They import `slurm` and nothing else of ours, and get by with Python's own library.
"""
