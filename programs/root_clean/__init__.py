"""Removes versions of the shared root that nothing needs. Entry: run.py; what may be removed is decided in plan.py."""
