"""The fixture stack, recorded; and an API server with answers made by hand."""

from tests.support.engine.canned import canned
from tests.support.engine.recorded import recorded

FIXTURES = (canned, recorded)
