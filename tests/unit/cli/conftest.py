"""The stack and the API server of the engine's tests."""

from tests.unit.engine.conftest import canned, recorded

FIXTURES = (canned, recorded)
