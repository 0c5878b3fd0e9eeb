"""Warns jobs that maintenance will meet, and requeues those that declared it. plan is pure, slurm and run are thin."""
