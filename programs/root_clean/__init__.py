"""Removes unneeded versions of the shared root. Entry: run.py; plan.py decides."""
