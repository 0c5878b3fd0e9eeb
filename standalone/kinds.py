"""Kinds that CustomResourceDefinitions bring: which of them the API server knows, and making it know more."""

import time
from collections.abc import Iterable, Sequence

from standalone.changes import labelled
from standalone.faults import StandaloneError
from standalone.kubectl import FIELD_MANAGER, Kubectl, document_list
from standalone.render import CRD, Document, Sort

_API_COLUMNS = 4
_POLL_S = 0.3


def unserved(kubectl: Kubectl, sorts: Iterable[Sort]) -> set[Sort]:
    """Of these kinds, those that the API server does not know (yet). Kubernetes' own are taken for granted."""
    custom = {one for one in sorts if one.is_custom}
    if not custom:
        return set()
    # It fails when one aggregated API of many does not answer, and gives the others all the same.
    answer = kubectl.call("api-resources", "--no-headers")
    rows = [line.split() for line in answer.out.splitlines()]
    known = {Sort(row[-3].rpartition("/")[0], row[-1]) for row in rows if len(row) >= _API_COLUMNS}
    if not known:
        raise StandaloneError(answer.err or "The API server names no kinds.")
    return custom - known


def sort_of(name: str) -> Sort:
    """A kind from its name in an ApplySet: `NodeSet.slipway.dev`."""
    kind, _, group = name.partition(".")
    return Sort(group, kind)


def refuse_unknown(declared: Iterable[Document], missing: set[Sort]) -> None:
    """Raises StandaloneError with every object of a kind that neither the API server nor the stack has."""
    brought = {one.brings for one in declared}
    if unknown := sorted(str(one.key) for one in declared if one.key.sort in missing - brought):
        rows = "\n".join(f"  {name}" for name in unknown)
        raise StandaloneError(
            f"The API server does not know the kind of these {len(unknown)} objects, and the stack brings no {CRD} for it:\n{rows}"
        )


def make(kubectl: Kubectl, set_id: str, definitions: Sequence[Document], force_conflicts: bool, timeout_s: float) -> None:
    """Applies CustomResourceDefinitions as members of the ApplySet and returns when the API server serves their kinds, before any object of
    theirs is applied. Raises StandaloneError."""
    for one in definitions:
        forced = ("--force-conflicts",) if force_conflicts or one.is_forced else ()
        body = document_list([labelled(one.manifest, set_id)])
        answer = kubectl.call("apply", "--server-side", "--field-manager", FIELD_MANAGER, *forced, "-f", "-", stdin=body)
        if answer.code:
            raise StandaloneError(answer.err)
    names = [f"{CRD.lower()}/{one.key.name}" for one in definitions]
    waits = ("--for=condition=Established", f"--timeout={timeout_s:.0f}s")
    answer = kubectl.call("wait", *waits, *names, timeout_s=timeout_s + 30)
    if answer.code:
        raise StandaloneError(f"The API server does not take the new kinds: {answer.err}")
    # Established comes a moment before the kind is in the list that kubectl looks kinds up in.
    deadline = time.monotonic() + timeout_s
    while missing := unserved(kubectl, [one.brings for one in definitions if one.brings]):
        if time.monotonic() > deadline:
            raise StandaloneError(f"The API server does not serve {', '.join(map(str, sorted(missing)))} after {timeout_s:.0f} s.")
        time.sleep(_POLL_S)
