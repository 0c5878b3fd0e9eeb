"""Finds what was changed in a version of the shared root since it was filled, and carries it into the next version. Entry: run.py."""
