"""Property tests search at random here, and the same way every time in CI, where a failure must be of the change; no test is timed."""

import os

from hypothesis import settings

settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")
