"""The templates of rendered files: their wording is in templates/*.j2, what they are filled with is computed by who renders."""

from functools import cache
from pathlib import Path

import jinja2


@cache
def template(name: str) -> jinja2.Template:
    """A template by its file's name. A value that it misses is an error, never an empty place."""
    environment = jinja2.Environment(  # noqa: S701 - these files are not HTML
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
