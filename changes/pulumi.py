"""The output of `pulumi preview --json` as steps. Pure.

Source of the format: PreviewDigest of Pulumi's sdk/go/common/display/json.go. It leaves out steps that change nothing, unless the preview
has --show-sames; secrets are `[secret]`.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from changes.steps import Op, Step, differences, step_of

_OPS: Mapping[str, Op] = {
    "create": "create",
    "import": "create",
    "update": "update",
    "refresh": "same",
    "same": "same",
    "delete": "delete",
    "replace": "replace",
}
"""The engine's operations. A replacement comes as `replace` with `create-replacement` and `delete-replaced`, which add nothing."""


class PreviewError(ValueError):
    """The text is not the output of `pulumi preview --json`."""


def read_preview(text: str) -> list[Step]:
    """The objects of a preview. Raises PreviewError."""
    try:
        digest: object = json.loads(text)
    except ValueError as error:
        raise PreviewError(f"no JSON: {error}") from error
    steps = cast(dict[str, Any], digest).get("steps") if isinstance(digest, dict) else None
    if not isinstance(steps, list):
        message = _diagnostics(cast(dict[str, Any], digest)) if isinstance(digest, dict) else ""
        raise PreviewError(message or "there is no list `steps`; it comes from: pulumi preview --json")
    try:
        return [step for raw_step in cast(list[dict[str, Any]], steps) if (step := _step(raw_step))]
    except (KeyError, TypeError, AttributeError) as error:
        raise PreviewError(f"a step does not have the form that the Pulumi CLI gives it: {type(error).__name__}: {error}") from error


def _step(raw_step: Mapping[str, Any]) -> Step | None:
    """The step of an object. None for components, most of other providers and the halves of a replacement."""
    op = _OPS.get(str(raw_step["op"]))
    old, new = (_inputs(raw_step.get(side)) for side in ("oldState", "newState"))
    state: Mapping[str, Any] = raw_step.get("newState") or raw_step.get("oldState") or {}
    type_ = str(state.get("type") or raw_step["urn"].split("::")[2].rpartition("$")[2])
    if op is None:
        return None
    changed = tuple(differences(old, new)) if op in ("update", "replace") else ()
    return step_of(op, type_, str(raw_step["urn"]).rpartition("::")[2], old, new, changed)


def _inputs(state: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (state or {}).get("inputs") or {}


def _diagnostics(digest: Mapping[str, Any]) -> str:
    errors = [
        str(diagnostic.get("message", "")).strip()
        for diagnostic in digest.get("diagnostics") or ()
        if diagnostic.get("severity") == "error"
    ]
    return f"the preview failed: {'; '.join(errors)}" if errors else ""
