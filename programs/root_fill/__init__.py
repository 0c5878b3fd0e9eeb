"""Fills one version of the shared root. Entry: run.py; plan.py decides."""
