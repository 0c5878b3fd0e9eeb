"""Which changed path replaces a resource, kind by kind."""

import pytest

from engine.replacement import replacing_path

STATEFUL_SET, CLAIM = "kubernetes:apps/v1:StatefulSet", "kubernetes:core/v1:PersistentVolumeClaim"
CONFIG_MAP, SECRET = "kubernetes:core/v1:ConfigMap", "kubernetes:core/v1:Secret"


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        pytest.param(CONFIG_MAP, "metadata.name", id="any-object-s-name"),
        pytest.param("kubernetes:slipway.dev/v1alpha1:NodeSet", "metadata.namespace", id="any-object-s-namespace"),
        pytest.param(STATEFUL_SET, "spec.volumeClaimTemplates.[0].spec.storageClassName", id="claim-template"),
        pytest.param(STATEFUL_SET, "spec.serviceName", id="stateful-set-s-service"),
        pytest.param(STATEFUL_SET, "spec.selector.matchLabels.app", id="stateful-set-s-selector"),
        pytest.param(STATEFUL_SET, "spec.podManagementPolicy", id="order-of-pods"),
        pytest.param("kubernetes:apps/v1:Deployment", "spec.selector.matchLabels.app", id="deployment-s-selector"),
        pytest.param("kubernetes:batch/v1:Job", "spec.template.spec.restartPolicy", id="job-s-pod"),
        pytest.param(CLAIM, "spec.storageClassName", id="claim-s-class"),
        pytest.param("kubernetes:core/v1:PersistentVolume", "spec.nfs.server", id="volume-s-source"),
        pytest.param("kubernetes:core/v1:Service", "spec.clusterIP", id="service-s-address"),
        pytest.param("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "roleRef.name", id="bound-role"),
        pytest.param(SECRET, "type", id="secret-s-type"),
        pytest.param("random:index/randomPassword:RandomPassword", "length", id="length-of-a-key"),
    ],
)
def test_change_replaces(type_: str, path: str) -> None:
    assert replacing_path(type_, {}, [tuple(path.split("."))]) == path.replace(".[", "[")


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        pytest.param(STATEFUL_SET, "spec.template.spec.containers.[slurmctld].image", id="image"),
        pytest.param(STATEFUL_SET, "spec.replicas", id="replicas"),
        pytest.param(CLAIM, "spec.resources.requests.storage", id="claim-that-grows"),
        pytest.param(CONFIG_MAP, "data.slurm.conf", id="mutable-files"),
        pytest.param(SECRET, "data.munge.key", id="mutable-secret"),
        pytest.param("kubernetes:slipway.dev/v1alpha1:NodeSet", "spec.volumeClaimTemplates.[0].spec", id="node-set-s-claims"),
        pytest.param("aws:eks/nodeGroup:NodeGroup", "instanceTypes.[0]", id="another-provider"),
    ],
)
def test_change_is_made_in_place(type_: str, path: str) -> None:
    assert replacing_path(type_, {}, [tuple(path.split("."))]) == ""


def test_immutable_objects_are_replaced_for_their_data() -> None:
    assert replacing_path(CONFIG_MAP, {"immutable": True}, [("metadata", "labels", "a"), ("data", "run.sh")]) == "data.run.sh"


def test_first_of_several_paths_is_named() -> None:
    assert replacing_path(STATEFUL_SET, {}, [("spec", "replicas"), ("spec", "selector"), ("spec", "serviceName")]) == "spec.selector"
