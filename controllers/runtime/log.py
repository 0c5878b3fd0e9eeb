"""Logs: one JSON object per line, to stdout, with the keys of slurm/logs. Lines of libraries have the same form."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from slurm import logs


def configure(program: str, level: str = "info", stream: TextIO | None = None) -> None:
    """`program` is the name in its lines. `level` is debug, info, warning or error; libraries log from warning on. Raises ValueError for
    any other level.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f'"{level}" is not a log level: debug, info, warning, error')

    def arrange(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
        """The line: slurm/logs knows the keys and their order."""
        return logs.line(program, str(event.pop("event", "")), str(event.pop("level", logs.INFO)), **event)

    shared: list[Processor] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    last: list[Processor] = [structlog.processors.format_exc_info, arrange]
    handler = logging.StreamHandler(stream or sys.stdout)
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
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stdout),
    )
