"""Logs: a JSON object a line, to standard error; those of libraries too."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """`level` is debug, info, warning or error; libraries are heard from warning on. Raises ValueError for another word."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f'"{level}" is no log level: debug, info, warning, error')
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    last: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
    )
