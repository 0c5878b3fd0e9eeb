"""Requests to the Kubernetes API server: each with a deadline in seconds and typed errors; bytes are decoded straight into structs.

Configuration is lightkube's: the mounted service account in a pod (its token is read again when the server refuses it), else KUBECONFIG or
~/.kube/config. No retries: the caller decides.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, Generic, TypeVar

import httpx2
import msgspec
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from controllers.runtime import metrics
from controllers.runtime.errors import ApiError, Conflict, Gone, NotFound, Refused, Unreachable, Unreadable, error_of
from controllers.runtime.structs import Key, PartialObject, Resource, Unread

__all__ = ["Api", "ApiError", "Conflict", "Gone", "Manifest", "NotFound", "Page", "Refused", "Unreachable", "Unreadable", "connect"]

T = TypeVar("T")
Manifest = Mapping[str, Any]

DEADLINE_S = 10.0
"""Seconds for a request, unless its caller sets another deadline."""
_CONNECTIONS = 64
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_HEADERS = {
    "Accept": "application/json",
    # Lists are large and the server near: packing costs both sides more than it saves.
    "Accept-Encoding": "identity",
    "User-Agent": "slipway",
}


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list."""

    items: list[T]
    unreadable: dict[Key, Unread]
    """Objects that do not fit the struct, and why."""
    version: str
    """Resource version of the whole list."""
    more: str
    """Token for the next part; empty at the end."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    more: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object, not decoded yet."""

    type: str
    object: msgspec.Raw


def connect(config: SingleConfig | None = None) -> "Api":
    """An Api by lightkube's configuration. Raises lightkube's ConfigError if there is none."""
    cluster = config or KubeConfig.from_env().get()
    if cluster is None:
        raise ConfigError("no Kubernetes configuration found")
    # Proxies of the environment are for what lies outside; the API server does not.
    parameters: Any = ConnectionParams(timeout=None, trust_env=False)
    arguments: dict[str, Any] = parameters.httpx_params(cluster)
    limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=30)
    return Api(httpx2.AsyncClient(**arguments, limits=limits, headers=_HEADERS))


class Api:
    """One API server. Every call returns its result, or raises an ApiError, within its deadline."""

    def __init__(self, client: httpx2.AsyncClient, deadline_s: float = DEADLINE_S) -> None:
        self._client = client
        self._deadline_s = deadline_s
        self.on_date: Callable[[str, float], None] = lambda _date, _took_s: None
        """Called with the `Date` of each answer, except of watches, and the seconds that the request took."""

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.aclose()

    async def list_page(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        more: str = "",
        deadline_s: float | None = None,
    ) -> Page[T]:
        """A part of a list, of one namespace or all. `limit` 0 asks for all objects at once. Raises Gone if `more` is too old."""
        asked = _chosen(labelSelector=labels, fieldSelector=fields, limit=str(limit or ""))
        asked |= _chosen(**{"continue": more})
        accept = _metadata("PartialObjectMetadataList") if resource.is_metadata_only else ""
        body = await self._request("list", "GET", resource, resource.path(namespace), asked, accept=accept, deadline_s=deadline_s)
        return _page(resource, body)

    async def watch(
        self, resource: Resource[T], version: str, *, namespace: str = "", labels: str = "", fields: str = "", silence_s: float, last_s: int
    ) -> AsyncGenerator[list[bytes]]:
        """Lines of a watch that starts after `version`, in batches as they arrive. The first batch is empty, once the server has accepted
        the watch.

        Ends when the server ends it, about `last_s` after the start.

        Raises Unreachable if nothing, not even a bookmark, comes for `silence_s`. Use `contextlib.aclosing`: leaving early must end the
        connection.
        """
        asked = _chosen(labelSelector=labels, fieldSelector=fields, resourceVersion=version, timeoutSeconds=str(last_s))
        asked |= {"watch": "true", "allowWatchBookmarks": "true"}
        headers = {"Accept": _metadata("PartialObjectMetadata")} if resource.is_metadata_only else None
        timeout = httpx2.Timeout(None, read=silence_s)
        request = self._client.build_request("GET", resource.path(namespace), params=asked, headers=headers, timeout=timeout)
        response: httpx2.Response | None = None
        try:
            async with self._counted("watch", resource), _translated(), asyncio.timeout(self._deadline_s):
                response = await self._client.send(request, stream=True)
                if not response.is_success:
                    raise error_of(await response.aread(), response.status_code, response.headers.get("Retry-After", ""))
            yield []
            partial = b""
            async with _translated():
                async for chunk in response.aiter_raw():
                    *lines, partial = (partial + chunk).split(b"\n")
                    if lines:
                        yield lines
        finally:
            if response is not None:
                await response.aclose()

    async def get(self, resource: Resource[T], namespace: str, name: str, *, deadline_s: float | None = None) -> T:
        """One object. Raises NotFound."""
        return _read(resource, await self._request("get", "GET", resource, resource.path(namespace, name), {}, deadline_s=deadline_s))

    async def create(self, resource: Resource[T], manifest: Manifest, *, field_manager: str, deadline_s: float | None = None) -> T:
        """Raises Conflict (reason AlreadyExists) if an object of that name exists."""
        path = resource.path(manifest["metadata"].get("namespace", ""))
        asked = {"fieldManager": field_manager}
        return _read(resource, await self._request("create", "POST", resource, path, asked, manifest, "application/json", deadline_s))

    async def apply(
        self,
        resource: Resource[T],
        manifest: Manifest,
        *,
        subresource: str = "",
        field_manager: str,
        force: bool = True,
        dry_run: bool = False,
        deadline_s: float | None = None,
    ) -> T:
        """Server-side apply: creates the object, or sets the manifest's fields.

        Without force, raises Conflict if others own a field and its value differs. With `dry_run`, returns the would-be result.
        """
        meta = manifest["metadata"]
        path = resource.path(meta.get("namespace", ""), meta["name"], subresource)
        verb = f"apply_{subresource}" if subresource else "apply"
        asked = {"fieldManager": field_manager, "force": "true" if force else "false", **_chosen(dryRun="All" if dry_run else "")}
        typed = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
        return _read(resource, await self._request(verb, "PATCH", resource, path, asked, typed, _APPLY, deadline_s))

    async def patch(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        change: Any,
        *,
        subresource: str = "",
        field_manager: str,
        dry_run: bool = False,
        deadline_s: float | None = None,
    ) -> T:
        """A JSON merge patch: null removes a field, a list is replaced as a whole.

        With `metadata.resourceVersion` in it, raises Conflict if the object has changed. With `dry_run`, returns the would-be result.
        """
        path = resource.path(namespace, name, subresource)
        verb = f"patch_{subresource}" if subresource else "patch"
        asked = {"fieldManager": field_manager, **_chosen(dryRun="All" if dry_run else "")}
        return _read(resource, await self._request(verb, "PATCH", resource, path, asked, change, _MERGE, deadline_s))

    async def delete(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        grace_s: int | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """Begins the deletion. Raises NotFound if the object is gone, Conflict if its uid or version is another."""
        conditions = _chosen(uid=uid, resourceVersion=version)
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        options |= {"preconditions": conditions} if conditions else {}
        options |= {"gracePeriodSeconds": grace_s} if grace_s is not None else {}
        await self._request("delete", "DELETE", resource, resource.path(namespace, name), {}, options, "application/json", deadline_s)

    async def _request(
        self,
        verb: str,
        method: str,
        resource: Resource[Any],
        path: str,
        asked: dict[str, str],
        body: Any = None,
        content_type: str = "",
        deadline_s: float | None = None,
        accept: str = "",
    ) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        headers = {name: value for name, value in (("Content-Type", content_type), ("Accept", accept)) if value}
        async with self._counted(verb, resource), _translated(), asyncio.timeout(deadline_s or self._deadline_s):
            begun = perf_counter()
            answer = await self._client.request(method, path, params=asked, content=content, headers=headers)
            self.on_date(answer.headers.get("Date", ""), perf_counter() - begun)
            if not answer.is_success:
                raise error_of(answer.content, answer.status_code, answer.headers.get("Retry-After", ""))
            return answer.content

    @asynccontextmanager
    async def _counted(self, verb: str, resource: Resource[Any]) -> AsyncGenerator[None]:
        begun = perf_counter()
        result = "cancelled"
        try:
            yield
            result = "ok"
        except ApiError as error:
            result = error.result
            raise
        finally:
            metrics.REQUESTS.labels(verb, resource.plural, result).inc()
            metrics.REQUEST_SECONDS.labels(verb).observe(perf_counter() - begun)


@asynccontextmanager
async def _translated() -> AsyncGenerator[None]:
    """Turns every way of getting no answer into Unreachable. ConfigError and OSError: the mounted token is missing."""
    try:
        yield
    except TimeoutError as error:
        raise Unreachable("no answer within the deadline") from error
    except httpx2.ReadTimeout as error:
        raise Unreachable("the watch fell silent") from error
    except (httpx2.HTTPError, ConfigError, OSError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}".rstrip(": ")) from error


def _metadata(kind: str) -> str:
    return f"application/json;as={kind};g=meta.k8s.io;v=v1"


def _chosen(**asked: str) -> dict[str, str]:
    return {name: value for name, value in asked.items() if value}


@cache
def _decoder(struct: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


_raw_list = msgspec.json.Decoder(_List[msgspec.Raw])
_meta = msgspec.json.Decoder(PartialObject)


def _read(resource: Resource[T], body: bytes) -> T:
    try:
        return _decoder(resource.struct).decode(body)
    except msgspec.DecodeError as error:
        raise Unreadable(f"{resource.kind}: {error}") from error


def _page(resource: Resource[T], body: bytes) -> Page[T]:
    try:
        page: _List[T] = _decoder(_List[resource.struct]).decode(body)
        return Page(page.items or [], {}, page.metadata.resource_version, page.metadata.more or "")
    except msgspec.ValidationError:  # one bad object must not hide all the others
        return _page_one_by_one(resource, body)
    except msgspec.DecodeError as error:
        raise Unreadable(f"list of {resource.plural}: {error}") from error


def _page_one_by_one(resource: Resource[T], body: bytes) -> Page[T]:
    try:
        page = _raw_list.decode(body)
        metas = [_meta.decode(raw).metadata for raw in page.items or []]
    except msgspec.DecodeError as error:
        raise Unreadable(f"list of {resource.plural}: {error}") from error
    items: list[T] = []
    unreadable: dict[Key, Unread] = {}
    for raw, meta in zip(page.items or [], metas, strict=True):
        try:
            items.append(_decoder(resource.struct).decode(raw))
        except msgspec.DecodeError as error:
            unreadable[meta.key] = Unread(meta, str(error), bytes(raw))
    return Page(items, unreadable, page.metadata.resource_version, page.metadata.more or "")
