import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from controllers.runtime import log


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Other tests log as they did."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_line_is_one_json_object() -> None:
    stream = io.StringIO()
    log.configure("guard", "info", stream)
    structlog.get_logger().info("draining", nodes="gpu-[0-3]", text='with "quotes"\nand lines')
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert (said["message"], said["level"], said["nodes"], said["text"]) == ("draining", "info", "gpu-[0-3]", 'with "quotes"\nand lines')
    assert said["time"].endswith("Z")


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        pytest.param("debug", ["debug", "info", "warning", "error"], id="debug"),
        pytest.param("info", ["info", "warning", "error"], id="info"),
        pytest.param("WARNING", ["warning", "error"], id="warning, in capitals"),
        pytest.param("error", ["error"], id="error"),
    ],
)
def test_level_says_what_is_heard(level: str, heard: list[str]) -> None:
    stream = io.StringIO()
    log.configure("guard", level, stream)
    logger = structlog.get_logger()
    for one in ("debug", "info", "warning", "error"):
        getattr(logger, one)("x")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == heard


def test_stack_trace_is_in_the_line() -> None:
    stream = io.StringIO()
    log.configure("guard", "info", stream)
    structlog.get_logger().error("ending", exc_info=ZeroDivisionError("why"))
    assert "ZeroDivisionError: why" in json.loads(stream.getvalue())["exception"]


def test_libraries_are_heard_from_warning_on() -> None:
    stream = io.StringIO()
    log.configure("guard", "debug", stream)
    logging.getLogger("httpx2").info("each request")
    logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=ZeroDivisionError("why"))
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert (said["logger"], said["level"], said["message"]) == ("asyncio", "error", "Task exception was never retrieved")
    assert "ZeroDivisionError: why" in said["exception"]


def test_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match='"loud" is not a log level'):
        log.configure("guard", "loud")
