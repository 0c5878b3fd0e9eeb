"""Backups of the accounting database and of slurmctld's state, and restores from them: one module for each of the four containers.

Which backups stay and which one a restore takes is decided in plan.py.
"""
