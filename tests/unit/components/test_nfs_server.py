"""The cluster's own NFS server, as manifests; tests/slurm/test_nfs_server.py runs it."""

import pytest

from components import nfs_server
from components.labels import Manifest
from configs.models.cluster import Cluster
from tests.support.components.examples import PODS
from tests.support.components.stacks import SERVED
from tests.unit.components.structure import structural_faults

SERVER = SERVED.storage.nfs_server or pytest.fail("no server")
CLOSED = SERVER.model_copy(update={"networks": ("10.0.0.0/16", "10.1.0.0/16")})
CHANGED = SERVED.model_copy(update={"storage": SERVED.storage.model_copy(update={"nfs_server": CLOSED})})


def server(cluster: Cluster = SERVED) -> Manifest:
    return nfs_server.build_server(cluster, PODS, SERVER)


def test_all_parts_are_what_kubernetes_knows() -> None:
    for made in (nfs_server.build_config(SERVED), nfs_server.build_service(PODS, SERVER), nfs_server.build_network_policy(PODS, CLOSED)):
        assert structural_faults(made) == []


def test_service_is_at_the_given_address_on_the_one_port() -> None:
    spec = nfs_server.build_service(PODS, SERVER)["spec"]
    assert spec["clusterIP"] == "10.96.20.49"
    assert [port["port"] for port in spec["ports"]] == [2049]
    assert spec["selector"].items() <= server()["spec"]["template"]["metadata"]["labels"].items()


def test_one_server_has_one_disk_that_outlives_a_protected_stack() -> None:
    spec = server()["spec"]
    assert spec["replicas"] == 1
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Ti"}}, "storageClassName": "fast"}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_changed_exports_restart_the_server_under_a_fixed_file_name() -> None:
    before, after = server(), server(CHANGED)
    assert before["spec"]["template"]["metadata"]["annotations"] != after["spec"]["template"]["metadata"]["annotations"]
    assert before["spec"]["template"]["spec"] == after["spec"]["template"]["spec"]
    assert nfs_server.build_config(CHANGED)["metadata"]["name"] == "dev-nfs-config"


def test_server_is_root_with_seven_rights_and_no_more() -> None:
    [container] = server()["spec"]["template"]["spec"]["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"]
    assert len(rights["capabilities"]["add"]) == 7
    assert not {"SYS_ADMIN", "SYS_RESOURCE", "NET_BIND_SERVICE"} & set(rights["capabilities"]["add"])
    assert rights["readOnlyRootFilesystem"]
    assert rights["allowPrivilegeEscalation"] is False


def test_folders_reach_the_start_script_with_their_modes() -> None:
    [container] = server()["spec"]["template"]["spec"]["containers"]
    assert {"name": "SLIPWAY_FOLDERS", "value": "shared-root:0755 home:0755 mount-data:1777"} in container["env"]


def test_policy_lets_nodes_in_by_their_networks_and_nothing_out() -> None:
    anyone, nodes = (nfs_server.build_network_policy(PODS, each)["spec"] for each in (SERVER, CLOSED))
    assert anyone["ingress"] == [{"ports": [{"port": 2049, "protocol": "TCP"}]}]
    assert [each["ipBlock"]["cidr"] for each in nodes["ingress"][0]["from"]] == ["10.0.0.0/16", "10.1.0.0/16"]
    for spec in (anyone, nodes):
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        assert spec["egress"] == []
