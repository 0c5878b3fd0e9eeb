"""A Service as a real API server answers after `up` applied it and `kubectl edit` changed it; and Secrets of a record."""

import base64
import bz2
import json
from typing import Any

from controllers.guard.record import RecordMeta, RecordSecret

UP = "2026-11-23T03:00:00Z"
EDIT = "2026-11-23T04:00:00Z"


def manager(name: str, operation: str, time: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    """An entry of managed fields."""
    return {"manager": name, "operation": operation, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def service(*more: dict[str, Any]) -> dict[str, Any]:
    """The live Service. `more` managers come last."""
    owned: dict[str, Any] = {
        "f:metadata": {"f:labels": {"f:slipway.dev/cluster": {}, "f:applyset.kubernetes.io/part-of": {}}},
        "f:spec": {
            "f:ports": {'k:{"port":6817,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:selector": {},
        },
    }
    edited: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":6818,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}}}}}
    finalized: dict[str, Any] = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"example.com/hold"': {}}, "f:annotations": {".": {}, "f:note": {}}}
    }
    status: dict[str, Any] = {"f:status": {"f:conditions": {}}}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "slurmctld",
            "namespace": "slurm",
            "uid": "u-1",
            "resourceVersion": "7",
            "labels": {"slipway.dev/cluster": "dev", "applyset.kubernetes.io/part-of": "set-1", "mine": "x"},
            "annotations": {"note": "y"},
            "finalizers": ["slipway.dev/hold", "example.com/hold"],
            "managedFields": [
                manager("slipway", "Apply", UP, owned),
                manager("kubectl-edit", "Update", EDIT, edited),
                manager("finalizing", "Update", EDIT, finalized),
                manager("kubelet", "Update", EDIT, status, subresource="status"),
                *more,
            ],
        },
        "spec": {
            "selector": {"app": "slurmctld"},
            "ports": [
                {"name": "slurmctld", "port": 6817, "protocol": "TCP", "targetPort": 6817},
                {"port": 6818, "protocol": "TCP", "targetPort": 6818},
            ],
        },
    }


def files(**about: Any) -> dict[str, Any]:
    """A declared ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files", "namespace": "slurm", **about},
        "data": {"slurm.conf": "ClusterName=dev\n"},
    }


def entry(manifest: Any, *ignored: str) -> str:
    """The value of an entry of the record."""
    return base64.b64encode(bz2.compress(json.dumps({"manifest": manifest, "ignored": list(ignored)}).encode())).decode()


def secret(data: dict[str, str], name: str = "dev-deployed", **about: Any) -> RecordSecret:
    """A Secret of the record."""
    return RecordSecret(RecordMeta(name=name, namespace="slurm", **about), data)
