"""Shows an overview once or continuously."""

import contextlib
import time
from pathlib import Path

from rich.console import RenderableType
from rich.live import Live

from cli import json_files
from cli.status.overview import Overview, as_json, build
from cli.status.readings import Readings, read
from cli.status.screen import render
from engine.api import Api
from engine.faults import SlipwayError
from engine.screen import Screen

_EVERY_S = 2.0


def show(screen: Screen, api: Api, namespace: str, watch: bool, json_file: Path | None) -> None:
    """Raises SlipwayError if the API server does not answer at first, or the file cannot be written."""
    readings = read(api, namespace, Readings())
    if readings.objects.value is None:
        raise SlipwayError(readings.objects.fault)
    if json_file:
        _write(json_file, readings)
        return
    title = f"{namespace} in {api}"
    if not watch:
        screen.console.print(_page(title, readings), soft_wrap=False)
        return
    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(_page(title, readings), console=screen.console, auto_refresh=False, screen=screen.console.is_terminal) as display,
    ):
        while True:
            time.sleep(_EVERY_S)
            readings = read(api, namespace, readings)
            display.update(_page(title, readings), refresh=True)


def _overview(readings: Readings) -> Overview:
    assert readings.objects.value is not None
    return build(readings.objects.value, readings.nodes.value, readings.queue.value)


def _page(title: str, readings: Readings) -> RenderableType:
    return render(f"{title}, {time.strftime('%Y-%m-%d %H:%M:%S')}", _overview(readings), readings, time.time())


def _write(file: Path, readings: Readings) -> None:
    ages = {
        name: {"at": reading.at, "fault": reading.fault}
        for name, reading in (("objects", readings.objects), ("nodes", readings.nodes), ("queue", readings.queue))
    }
    json_files.write(file, {**as_json(_overview(readings)), "readings": ages})
