"""Fills one version of the shared root. Entry: run.py; what to do with what is there is decided in plan.py."""
