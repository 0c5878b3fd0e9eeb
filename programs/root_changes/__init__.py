"""What was changed in a version of the shared root since it was filled, and how that gets into the next version. Entry: run.py."""
