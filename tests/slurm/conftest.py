"""The built image, and what running it needs (tests/support/slurm/session.py)."""

from tests.support.slurm.session import alone, image_root, pytest_runtest_makereport, tools

FIXTURES = (alone, image_root, tools)
HOOKS = (pytest_runtest_makereport,)
