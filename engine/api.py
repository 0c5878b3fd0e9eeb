"""Requests to the Kubernetes API server: objects as plain JSON in and out, and each failure typed.

Connections and credentials are lightkube's (see kubeconfig.py). Nothing is decided here.
"""

import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeVar, cast

import httpx2
from lightkube.core.exceptions import ConfigError

from engine import kubeconfig
from engine.faults import SlipwayError, UnreachableError
from engine.kubeconfig import Target, Where
from engine.render import Key, Sort, key_of
from names import writers

_TRIES = 5
_AT_ONCE = 8
_DISCOVERY = ",".join(f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1"))
_T = TypeVar("_T")
_R = TypeVar("_R")


class RefusedError(SlipwayError):
    """The API server's answer to a request that it does not carry out: its own words, its HTTP code, and its reason."""

    def __init__(self, words: str, code: int, reason: str) -> None:
        super().__init__(words)
        self.code, self.reason = code, reason


@dataclass(frozen=True)
class Served:
    """How the API server serves a kind."""

    version: str
    """Its preferred `apiVersion`."""
    plural: str
    is_namespaced: bool


@dataclass
class Api:
    """One cluster. Every request raises RefusedError where the server refuses it, and UnreachableError where it does not answer."""

    where: Where
    client: httpx2.Client
    target: Target
    _kinds: dict[Sort, Served] = field(default_factory=dict[Sort, Served])

    def __str__(self) -> str:
        return str(self.where)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
        **parameters: Any,
    ) -> httpx2.Response:
        """One request. A server that is overloaded says when to ask again, and is asked again then."""
        typed = {"Content-Type": content} if body is not None else {}
        headers = {"Accept": "*/*", **typed, **headers}
        for _ in range(_TRIES):
            answer = self._send(method, path, json=body, headers=headers, params=parameters)
            if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        else:
            raise UnreachableError(f"{self} is overloaded: {self.target.server}")
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise UnreachableError(f"{self} does not accept these credentials: {_status(answer).get('message') or answer.reason_phrase}")
        if not answer.is_success:
            status = _status(answer)
            words = str(status.get("message") or f"{answer.status_code} {answer.reason_phrase}")
            raise RefusedError(words, answer.status_code, str(status.get("reason") or ""))
        return answer

    def _send(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        try:
            return self.client.request(method, path, **arguments)
        except httpx2.TransportError as error:
            if untrusted := _untrusted(error):
                raise UnreachableError(f"{self}: {self.target.distrust(untrusted.verify_message)}") from error
            raise UnreachableError(f"No cluster answers at {self}: {self.target.server}: {error or type(error).__name__}") from error
        except (ConfigError, OSError, LookupError, ValueError) as error:
            raise UnreachableError(f"{self}: its credentials cannot be read: {type(error).__name__}: {error}") from error

    def kinds(self, again: bool = False) -> Mapping[Sort, Served]:
        """Every kind that the API server knows; asked once, or `again`. An aggregated API that does not answer leaves the others."""
        if again or not self._kinds:
            self._kinds.clear()
            answers: list[dict[str, Any]] = [self.request("GET", root, headers={"Accept": _DISCOVERY}).json() for root in ("/api", "/apis")]
            for group in cast(list[dict[str, Any]], [*answers[0]["items"], *answers[1]["items"]]):
                name = str(group["metadata"].get("name") or "")
                for version in group["versions"]:
                    for each in version.get("resources", ()):
                        served_as: dict[str, str] = each.get("responseKind") or {}
                        sort = Sort(name, served_as.get("kind", ""))
                        api_version = f"{name}/{version['version']}".lstrip("/")
                        self._kinds.setdefault(sort, Served(api_version, each["resource"], each["scope"] == "Namespaced"))
        return self._kinds

    def path(self, version: str, key: Key, *more: str) -> str:
        """The path of an object; of its kind's list, in one namespace, without a name."""
        if (served := self.kinds().get(key.sort)) is None:
            raise RefusedError(f"The API server does not know the kind {key.sort}.", HTTPStatus.NOT_FOUND, "NotFound")
        root = "apis" if key.group else "api"
        where = ("namespaces", key.namespace) if served.is_namespaced and key.namespace else ()
        return "/".join(("", root, version or served.version, *where, served.plural, *((key.name,) if key.name else ()), *more))

    def find(self, key: Key, version: str = "") -> dict[str, Any] | None:
        """An object; None where there is none."""
        try:
            return self.request("GET", self.path(version, key)).json()
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return None

    def list(self, sort: Sort, namespace: str = "", **selectors: str) -> list[dict[str, Any]]:
        """Objects of a kind, in a namespace unless the kind has none."""
        said = self.request("GET", self.path("", Key(sort.group, sort.kind, namespace, "")), **cast(dict[str, Any], selectors)).json()
        # Items of a list do not say what they are.
        about: dict[str, Any] = {"apiVersion": said["apiVersion"], "kind": sort.kind}
        return [about | item for item in said["items"]]

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Makes an object. Raises RefusedError where it is there."""
        path = self.path(str(manifest["apiVersion"]), key_of(manifest)._replace(name=""))
        return self.request("POST", path, manifest, fieldManager=writers.SLIPWAY).json()

    def apply(self, manifest: Mapping[str, Any], force: bool, dry_run: bool = False, manager: str = writers.SLIPWAY) -> dict[str, Any]:
        """Applies an object on the server's side; gives it as it is, or would be, then."""
        asked: dict[str, Any] = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        asked |= {"dryRun": "All"} if dry_run else {}
        path = self.path(str(manifest["apiVersion"]), key_of(manifest))
        return self.request("PATCH", path, manifest, "application/apply-patch+yaml", **asked).json()

    def merge(self, key: Key, change: Mapping[str, Any]) -> None:
        """Changes fields of an object."""
        self.request("PATCH", self.path("", key), change, "application/merge-patch+json", fieldManager=writers.SLIPWAY)

    def delete(self, key: Key, version: str = "", propagation: str = "Background", uid: str = "") -> bool:
        """Asks for the deletion of an object; False where it is gone already. With a UID, the server refuses (409) another object of its
        name."""
        only = {"preconditions": {"uid": uid}} if uid else {}
        try:
            self.request("DELETE", self.path(version, key), {"propagationPolicy": propagation, **only})
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def await_change(self, live: Mapping[str, Any], within_s: int) -> None:
        """Returns when an object is no longer as it was read, at the latest after `within_s`."""
        about, begin = live["metadata"], time.monotonic()
        asked = {"fieldSelector": f"metadata.name={about['name']}", "resourceVersion": about["resourceVersion"]}
        path = self.path(str(live["apiVersion"]), key_of(live)._replace(name=""))
        try:
            with self.client.stream("GET", path, params={**asked, "watch": "true", "timeoutSeconds": str(within_s)}) as answer:
                first = next(answer.iter_lines(), "") if answer.is_success else ""
                if first and json.loads(first)["type"] != "ERROR":
                    return
        except (httpx2.HTTPError, ConfigError, OSError, LookupError, ValueError):
            pass  # the request that follows says so
        time.sleep(max(0.0, within_s - (time.monotonic() - begin)))  # not allowed to watch, say


def connect(where: Where) -> Api:
    """The chosen cluster, not asked yet. Raises UnreachableError."""
    return Api(where, *kubeconfig.connect(where))


def side_by_side(function: Callable[[_T], _R], items: Iterable[_T]) -> Sequence[_R]:
    """The function of each item, several at a time, in the items' order. Raises what the first of them raises."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The refusal of the server's certificate that is behind an error; None where none is."""
    while error and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _status(answer: httpx2.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}
