"""Requests to the Kubernetes API server: plain JSON in and out, and a typed error for each failure. lightkube connects (kubeconfig.py)."""

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
    """The API server refuses a request: its message, its HTTP code and its reason."""

    def __init__(self, message: str, code: int, reason: str) -> None:
        super().__init__(message)
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
    """One cluster. Requests raise RefusedError if the server refuses them, and UnreachableError if it does not answer."""

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
        """One request. It is repeated when an overloaded server asks for that."""
        content_type = {"Content-Type": content} if body is not None else {}
        headers = {"Accept": "*/*", **content_type, **headers}
        for _ in range(_TRIES):
            response = self._send(method, path, json=body, headers=headers, params=parameters)
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(float(response.headers.get("Retry-After", 1)))
        else:
            raise UnreachableError(f"The API server of {self} is overloaded: {self.target.server}. Try again later.")
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            raise UnreachableError(
                f"{self} does not accept these credentials: {_status(response).get('message') or response.reason_phrase}"
            )
        if not response.is_success:
            status = _status(response)
            message = str(status.get("message") or f"{response.status_code} {response.reason_phrase}")
            raise RefusedError(message, response.status_code, str(status.get("reason") or ""))
        return response

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
        """Every kind that the API server serves, read once, or `again`. Kinds of an aggregated API that does not answer are missing."""
        if again or not self._kinds:
            self._kinds.clear()
            roots: list[dict[str, Any]] = [self.request("GET", root, headers={"Accept": _DISCOVERY}).json() for root in ("/api", "/apis")]
            for group in cast(list[dict[str, Any]], [*roots[0]["items"], *roots[1]["items"]]):
                name = str(group["metadata"].get("name") or "")
                for version in group["versions"]:
                    for resource in version.get("resources", ()):
                        served_as: dict[str, str] = resource.get("responseKind") or {}
                        sort = Sort(name, served_as.get("kind", ""))
                        api_version = f"{name}/{version['version']}".lstrip("/")
                        self._kinds.setdefault(sort, Served(api_version, resource["resource"], resource["scope"] == "Namespaced"))
        return self._kinds

    def path(self, version: str, key: Key, *more: str) -> str:
        """The path of an object. Without a name, it is the path of the list of its kind."""
        if (served := self.kinds().get(key.sort)) is None:
            raise RefusedError(f"The API server does not know the kind {key.sort}.", HTTPStatus.NOT_FOUND, "NotFound")
        root = "apis" if key.group else "api"
        where = ("namespaces", key.namespace) if served.is_namespaced and key.namespace else ()
        return "/".join(("", root, version or served.version, *where, served.plural, *((key.name,) if key.name else ()), *more))

    def find(self, key: Key, version: str = "") -> dict[str, Any] | None:
        """The object, or None if it does not exist."""
        try:
            return self.request("GET", self.path(version, key)).json()
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return None

    def list(self, sort: Sort, namespace: str = "", **selectors: str) -> list[dict[str, Any]]:
        """The objects of a kind. The namespace is ignored for a kind that has none."""
        listed = self.request("GET", self.path("", Key(sort.group, sort.kind, namespace, "")), **cast(dict[str, Any], selectors)).json()
        # Items of a list have no apiVersion and no kind.
        type_meta: dict[str, Any] = {"apiVersion": listed["apiVersion"], "kind": sort.kind}
        return [type_meta | item for item in listed["items"]]

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Creates an object. Raises RefusedError if it exists."""
        path = self.path(str(manifest["apiVersion"]), key_of(manifest)._replace(name=""))
        return self.request("POST", path, manifest, fieldManager=writers.SLIPWAY).json()

    def apply(self, manifest: Mapping[str, Any], force: bool, dry_run: bool = False, manager: str = writers.SLIPWAY) -> dict[str, Any]:
        """Server-side apply. Returns the object as it is afterwards, or would be after a dry run."""
        parameters: dict[str, Any] = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        parameters |= {"dryRun": "All"} if dry_run else {}
        path = self.path(str(manifest["apiVersion"]), key_of(manifest))
        return self.request("PATCH", path, manifest, "application/apply-patch+yaml", **parameters).json()

    def merge(self, key: Key, change: Mapping[str, Any]) -> None:
        """Changes fields of an object."""
        self.request("PATCH", self.path("", key), change, "application/merge-patch+json", fieldManager=writers.SLIPWAY)

    def delete(self, key: Key, version: str = "", propagation: str = "Background", uid: str = "") -> bool:
        """Requests the deletion of an object. Returns False if it does not exist. With a UID, the server refuses (409) to delete another
        object of the same name."""
        preconditions = {"preconditions": {"uid": uid}} if uid else {}
        try:
            self.request("DELETE", self.path(version, key), {"propagationPolicy": propagation, **preconditions})
        except RefusedError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def await_change(self, live: Mapping[str, Any], within_s: int) -> None:
        """Returns when the object has changed since it was read, at the latest after `within_s`."""
        metadata, started = live["metadata"], time.monotonic()
        selector = {"fieldSelector": f"metadata.name={metadata['name']}", "resourceVersion": metadata["resourceVersion"]}
        path = self.path(str(live["apiVersion"]), key_of(live)._replace(name=""))
        try:
            with self.client.stream("GET", path, params={**selector, "watch": "true", "timeoutSeconds": str(within_s)}) as response:
                first_line = next(response.iter_lines(), "") if response.is_success else ""
                if first_line and json.loads(first_line)["type"] != "ERROR":
                    return
        except (httpx2.HTTPError, ConfigError, OSError, LookupError, ValueError):
            pass  # the caller's next request raises the error
        time.sleep(max(0.0, within_s - (time.monotonic() - started)))  # for instance, this user may not watch


def connect(where: Where) -> Api:
    """The chosen cluster; no request is sent yet. Raises UnreachableError."""
    return Api(where, *kubeconfig.connect(where))


def side_by_side(function: Callable[[_T], _R], items: Iterable[_T]) -> Sequence[_R]:
    """Calls the function with each item, several at a time. Results are in the order of the items; the first error is raised."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The certificate error that caused an error, if there is one."""
    while error and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _status(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], body) if isinstance(body, dict) else {}
