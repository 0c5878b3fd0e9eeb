"""The command lines of etcd, API server, controller manager and scheduler. Starts nothing. All listen on the bridge's address only.

Tuned for two cores shared with Slurm: no leader election, no fsync (`down` deletes the cluster), few workers.
"""

from pathlib import Path

from local import cgroups, layout
from local.layout import Paths
from local.processes import Program

CGROUP = "/slipway/host"


def etcd(paths: Paths) -> Program:
    """Debian's etcd with kubeadm's certificates."""
    client = f"https://{layout.HOST}:{layout.ETCD_PORT}"
    peer = f"https://{layout.HOST}:{layout.ETCD_PEER_PORT}"
    pki = paths.pki / "etcd"
    return _program(
        "etcd",
        "/usr/bin/etcd",
        name="local",
        data_dir=paths.etcd,
        listen_client_urls=client,
        advertise_client_urls=client,
        listen_peer_urls=peer,
        initial_advertise_peer_urls=peer,
        initial_cluster=f"local={peer}",
        cert_file=pki / "server.crt",
        key_file=pki / "server.key",
        trusted_ca_file=pki / "ca.crt",
        client_cert_auth="true",
        peer_cert_file=pki / "peer.crt",
        peer_key_file=pki / "peer.key",
        peer_trusted_ca_file=pki / "ca.crt",
        peer_client_cert_auth="true",
        unsafe_no_fsync="true",
        snapshot_count="10000",
        log_level="warn",
    )


def api_server(paths: Paths, binary: Path) -> Program:
    """kube-apiserver, with what kubeadm would set and no more."""
    pki = paths.pki
    return _program(
        "kube-apiserver",
        str(binary),
        advertise_address=layout.HOST,
        bind_address=layout.HOST,
        secure_port=layout.API_PORT,
        etcd_servers=f"https://{layout.HOST}:{layout.ETCD_PORT}",
        etcd_cafile=pki / "etcd/ca.crt",
        etcd_certfile=pki / "apiserver-etcd-client.crt",
        etcd_keyfile=pki / "apiserver-etcd-client.key",
        client_ca_file=pki / "ca.crt",
        tls_cert_file=pki / "apiserver.crt",
        tls_private_key_file=pki / "apiserver.key",
        kubelet_client_certificate=pki / "apiserver-kubelet-client.crt",
        kubelet_client_key=pki / "apiserver-kubelet-client.key",
        kubelet_preferred_address_types="InternalIP",
        proxy_client_cert_file=pki / "front-proxy-client.crt",
        proxy_client_key_file=pki / "front-proxy-client.key",
        requestheader_client_ca_file=pki / "front-proxy-ca.crt",
        requestheader_allowed_names="front-proxy-client",
        requestheader_username_headers="X-Remote-User",
        requestheader_group_headers="X-Remote-Group",
        requestheader_extra_headers_prefix="X-Remote-Extra-",
        service_account_issuer=f"https://kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
        service_account_key_file=pki / "sa.pub",
        service_account_signing_key_file=pki / "sa.key",
        service_cluster_ip_range=layout.SERVICE_RANGE,
        authorization_mode="Node,RBAC",
        enable_admission_plugins="NodeRestriction",
        allow_privileged="true",
        profiling="false",
        event_ttl="1h",
    )


def controller_manager(paths: Paths, binary: Path) -> Program:
    """kube-controller-manager. Pod ranges are fixed by the layout, so it gives none out."""
    pki = paths.pki
    conf = pki / "controller-manager.conf"
    return _program(
        "kube-controller-manager",
        str(binary),
        kubeconfig=conf,
        authentication_kubeconfig=conf,
        authorization_kubeconfig=conf,
        bind_address=layout.HOST,
        secure_port=layout.CONTROLLER_MANAGER_PORT,
        client_ca_file=pki / "ca.crt",
        requestheader_client_ca_file=pki / "front-proxy-ca.crt",
        root_ca_file=pki / "ca.crt",
        cluster_signing_cert_file=pki / "ca.crt",
        cluster_signing_key_file=pki / "ca.key",
        service_account_private_key_file=pki / "sa.key",
        use_service_account_credentials="true",
        controllers="*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller,-service-lb-controller",
        allocate_node_cidrs="false",
        leader_elect="false",
        profiling="false",
        kube_api_qps=100,
        kube_api_burst=200,
    )


def scheduler(paths: Paths, binary: Path) -> Program:
    """kube-scheduler with its default plugins."""
    conf = paths.pki / "scheduler.conf"
    return _program(
        "kube-scheduler",
        str(binary),
        kubeconfig=conf,
        authentication_kubeconfig=conf,
        authorization_kubeconfig=conf,
        bind_address=layout.HOST,
        secure_port=layout.SCHEDULER_PORT,
        leader_elect="false",
        profiling="false",
        kube_api_qps=100,
        kube_api_burst=200,
    )


def _program(name: str, binary: str, /, **flags: object) -> Program:
    argv = (binary, *(f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()))
    return Program(name, argv, (cgroups.procs_file(CGROUP),))
