"""What the API server has, asked over one connection: a `kubectl get` takes 90 ms and most of a processor, and tests ask at every turn."""

from functools import cached_property
from pathlib import Path
from typing import Any, cast

import httpx2

from standalone.api import connect
from standalone.faults import StandaloneError
from standalone.kubeconfig import Where

_DISCOVERY = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


class Reads:
    """Reads of one cluster. Each fails with an AssertionError: the API server's words, or that it does not answer."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._api = connect(Where(str(kubeconfig), None))
        self._namespace = namespace

    def get(self, kind: str, name: str = "", labels: str = "", fields: str = "") -> Any:
        """An object, or the list of a kind, in the namespace if the kind has one. The kind is named as for kubectl."""
        root, plural, is_namespaced = self._resources[kind]
        parts = [root, *(["namespaces", self._namespace] if is_namespaced else []), plural, *([name] if name else [])]
        asked = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        return self._ask("/".join(parts), **asked).json()

    def text(self, path: str, **parameters: str) -> str:
        """What the API server has at a path, as `kubectl get --raw`."""
        return self._ask(path, **parameters).text

    def _ask(self, path: str, **parameters: str) -> httpx2.Response:
        try:
            return self._api.request("GET", path, **cast(dict[str, Any], parameters))
        except StandaloneError as error:
            raise AssertionError(f"GET {path}: {error}") from error

    @cached_property
    def _resources(self) -> dict[str, tuple[str, str, bool]]:
        """Each kind by the names that it may be given: where its group is, its plural, and whether it lies in namespaces."""
        known: dict[str, tuple[str, str, bool]] = {}
        for root in ("/api", "/apis"):
            for group in self._api.request("GET", root, headers=_DISCOVERY).json()["items"]:
                about = group["metadata"].get("name", "")
                for version in group["versions"]:
                    for one in version.get("resources", ()):
                        place = "/".join(filter(None, (root, about, version["version"])))
                        names = (one["resource"], one.get("singularResource", ""), *one.get("shortNames", ()))
                        for name in (*names, *(f"{plain}.{about}" for plain in names if about)):
                            known.setdefault(name, (place, one["resource"], one["scope"] == "Namespaced"))
        return known
