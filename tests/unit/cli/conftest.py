"""How tests run a verb; the stack and the API server are those of the engine's tests."""

from tests.support.engine.canned import canned
from tests.support.engine.recorded import recorded

FIXTURES = (canned, recorded)
