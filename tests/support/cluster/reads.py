"""What the API server has, asked over one connection: a `kubectl get` takes 90 ms and most of a processor, and tests ask at every turn."""

from functools import cached_property
from pathlib import Path
from typing import Any, cast

import httpx2

from engine.api import Api, connect
from engine.faults import SlipwayError
from engine.kubeconfig import Where
from engine.render import Key, Sort


class Reads:
    """Reads of one cluster. Each fails with an AssertionError: the API server's words, or that it does not answer."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig, self._namespace = kubeconfig, namespace
        self._connected: tuple[bytes, Api] | None = None

    @property
    def _api(self) -> Api:
        """The client. It is replaced when the kubeconfig changes: `make down` and `make up` give the cluster new certificates."""
        try:
            present = self._kubeconfig.read_bytes()
            if self._connected is None or self._connected[0] != present:
                self._connected = present, connect(Where(str(self._kubeconfig), None))
        except (OSError, SlipwayError) as error:
            raise AssertionError(f"{self._kubeconfig}: {error}") from error
        return self._connected[1]

    def get(self, kind: str, name: str = "", labels: str = "", fields: str = "") -> Any:
        """An object, or the list of a kind, in the namespace if the kind has one. A kind is named as for kubectl, but for short names."""
        asked = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        return self._ask(self._api.path("", Key(*self._sorts[kind], self._namespace, name)), **asked).json()

    def text(self, path: str, **parameters: str) -> str:
        """What the API server has at a path, as `kubectl get --raw`."""
        return self._ask(path, **parameters).text

    def _ask(self, path: str, **parameters: str) -> httpx2.Response:
        try:
            return self._api.request("GET", path, **cast(dict[str, Any], parameters))
        except SlipwayError as error:
            raise AssertionError(f"GET {path}: {error}") from error

    @cached_property
    def _sorts(self) -> dict[str, Sort]:
        """Every kind by its names. Where two groups have one name, it is that of the first, as for kubectl."""
        known: dict[str, Sort] = {}
        for sort, served in self._api.kinds().items():
            for name in (served.plural, sort.kind.lower(), f"{served.plural}.{sort.group}"):
                known.setdefault(name, sort)
        return known
