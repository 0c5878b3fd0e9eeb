"""Kubernetes' own structure as a check: keys, types and required fields of a manifest, from the classes that pulumi-kubernetes generates
from Kubernetes' API description. Says nothing of values; the cluster tests do.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union, cast, get_args, get_origin

import pulumi
from pulumi import _types  # pyright: ignore[reportPrivateUsage]
from pulumi_kubernetes import apps, batch, core, networking, node, policy, rbac, scheduling

_ROOTS: dict[tuple[str, str], type] = {
    ("v1", "ConfigMap"): core.v1.ConfigMapInitArgs,
    ("v1", "Namespace"): core.v1.NamespaceInitArgs,
    ("v1", "PersistentVolume"): core.v1.PersistentVolumeInitArgs,
    ("v1", "PersistentVolumeClaim"): core.v1.PersistentVolumeClaimInitArgs,
    ("v1", "PodTemplate"): core.v1.PodTemplateInitArgs,
    ("v1", "Secret"): core.v1.SecretInitArgs,
    ("v1", "Service"): core.v1.ServiceInitArgs,
    ("v1", "ServiceAccount"): core.v1.ServiceAccountInitArgs,
    ("apps/v1", "Deployment"): apps.v1.DeploymentInitArgs,
    ("apps/v1", "StatefulSet"): apps.v1.StatefulSetInitArgs,
    ("batch/v1", "CronJob"): batch.v1.CronJobInitArgs,
    ("networking.k8s.io/v1", "NetworkPolicy"): networking.v1.NetworkPolicyInitArgs,
    ("node.k8s.io/v1", "RuntimeClass"): node.v1.RuntimeClassInitArgs,
    ("policy/v1", "PodDisruptionBudget"): policy.v1.PodDisruptionBudgetInitArgs,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): rbac.v1.ClusterRoleInitArgs,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): rbac.v1.ClusterRoleBindingInitArgs,
    ("rbac.authorization.k8s.io/v1", "Role"): rbac.v1.RoleInitArgs,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): rbac.v1.RoleBindingInitArgs,
    ("scheduling.k8s.io/v1", "PriorityClass"): scheduling.v1.PriorityClassInitArgs,
}


def structural_faults(manifest: Mapping[str, Any]) -> list[str]:
    """Every place where a manifest is not what Kubernetes' API describes, as `path: what is wrong`."""
    kind = _ROOTS[manifest["apiVersion"], manifest["kind"]]
    fields = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    return list(_check(fields, kind, manifest["kind"]))


def _check(value: Any, wanted: Any, path: str) -> Iterator[str]:
    candidates = list(_alternatives(wanted))
    if value is None or isinstance(value, pulumi.Output) or Any in candidates:
        return
    if isinstance(value, Mapping):
        yield from _check_mapping(cast(Mapping[str, Any], value), candidates, path)
    elif isinstance(value, list | tuple):
        items = [get_args(one)[0] for one in candidates if get_origin(one) in (list, Sequence) or _is_sequence(one)]
        if not items:
            yield f"{path}: a list, not {candidates}"
        for at, item in enumerate(cast(Sequence[Any], value) if items else ()):
            yield from _check(item, items[0], f"{path}[{at}]")
    elif not any(type(value) is one for one in candidates):
        yield f"{path}: {value!r} is a {type(value).__name__}, not {candidates}"


def _check_mapping(value: Mapping[str, Any], candidates: list[Any], path: str) -> Iterator[str]:
    models = [one for one in candidates if isinstance(one, type) and _types.is_input_type(one)]
    maps = [get_args(one)[1] for one in candidates if _is_mapping(one)]
    if models:
        known = _types.input_type_types(models[0])
        yield from (f"{path}.{key}: no such field" for key in value.keys() - known.keys())
        yield from (f"{path}.{key}: missing" for key in _required(models[0]) - value.keys())
        for key in value.keys() & known.keys():
            yield from _check(value[key], known[key], f"{path}.{key}")
    elif maps:
        for key, item in value.items():
            yield from _check(item, maps[0], f"{path}.{key}")
    else:
        yield f"{path}: an object, not {candidates}"


def _required(model: type) -> set[str]:
    names = _types.input_type_py_to_pulumi_names(model)
    parameters = inspect.signature(model.__init__).parameters.values()
    return {names[one.name] for one in parameters if one.name in names and one.default is inspect.Parameter.empty}


def _alternatives(wanted: Any) -> Iterator[Any]:
    if get_origin(wanted) is Union or type(wanted).__name__ == "UnionType":
        for one in get_args(wanted):
            if get_origin(one) is None or _is_sequence(one) or _is_mapping(one):
                yield from _alternatives(one)
    else:
        yield wanted


def _is_sequence(one: Any) -> bool:
    return get_origin(one) is Sequence


def _is_mapping(one: Any) -> bool:
    return get_origin(one) is Mapping
