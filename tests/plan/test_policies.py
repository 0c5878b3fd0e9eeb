"""The policies over recorded plans: every example and every variant of one is accepted; every rule refuses a plan that breaks it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, cast

import pytest

from cli import main as cli
from engine import project, record
from engine.policy import record_of
from policies import slurm_releases
from policies.exceptions import HOST_PATHS, PODS, UNLIMITED
from policies.pods import containers, pods
from policies.records import UNKNOWN, Hidden, Resource, Rule, findings, lines
from policies.rules import RULES
from policies.size import MOST_RESOURCES
from tests.plan.examples import plan_of
from tests.plan.policy_edits import GONE, Edit, add, edit, leak, leak_as_name, leak_result, records, secret_text, unprotect
from tests.support.project import KEYS, ROOT

NFS = (
    'cluster.storage={"nfsServer": {"size": "10Gi", "clusterIP": "10.96.0.50"}, "sharedRoot": {"nfsServer": true}, '
    '"root": {}, "home": {"nfsServer": true}, "state": {"size": "1Gi"}}'
)
HOST_MOUNT = 'cluster.storage.mounts=[{"name": "data", "mountPath": "/data", "hostPath": "/srv/data"}]'
ARCHIVE = (
    HOST_MOUNT,
    'cluster.accounting.purge={"jobs": "12months"}',
    'cluster.accounting.archive={"records": ["jobs"], "volume": {"hostPath": "/srv/archive"}}',
)
IMAGE = 'cluster.storage.root={"current": "a", "versions": [{"name": "a", "image": "registry.example/root:1"}], "packages": ["jq"]}'
EXTERNAL = (
    'cluster.accounting={"external": {"host": "db.example", "passwordSecret": "db", "tls": false}}',
    'cluster.backup={"volume": {"hostPath": "/srv/backup"}}',
)
VARIANTS = [
    pytest.param("dev", (), id="dev"),
    pytest.param("h100", (), id="h100"),
    pytest.param("h100", ("cluster.deletionProtection=false",), id="h100-unprotected"),
    pytest.param("h100", ("cluster.monitoring={}",), id="h100-with-monitoring"),
    pytest.param("dev", (NFS,), id="nfs-server"),
    pytest.param("dev", (NFS, "cluster.deletionProtection=true"), id="protected-nfs-server"),
    pytest.param("dev", ARCHIVE, id="archive-on-a-host-path"),
    pytest.param("dev", (IMAGE,), id="root-from-an-image"),
    pytest.param("dev", EXTERNAL, id="external-database-with-backups"),
    pytest.param("dev", ("cluster.name=gpu-1", "cluster.namespace=cpu-0"), id="cluster-called-like-a-node"),
    pytest.param("h100", ("cluster.keys.munge=2", "cluster.keys.jwt=2", "cluster.keys.database=2"), id="rotated-keys"),
]


def told(stack: Sequence[Resource], rules: Sequence[Rule] = RULES) -> list[str]:
    """All findings, in words."""
    return [str(finding) for finding in findings(stack, rules)]


@pytest.mark.parametrize(("stack", "overrides"), VARIANTS)
def test_policies_accept_what_slipway_declares(stack: str, overrides: tuple[str, ...]) -> None:
    assert told(records(stack, *overrides)) == []


@pytest.mark.parametrize("file", [pytest.param("Pulumi.cluster.yaml", id="cluster"), pytest.param(None, id="template")])
def test_policies_accept_the_small_stacks(file: str | None) -> None:
    path = ROOT / file if file else ROOT / "templates" / "slurm-python" / "Pulumi.dev.yaml"
    plan = record.record(project.load(ROOT, "dev", KEYS[:2], path)).plan
    assert told([record_of(resource) for resource in plan.resources]) == []


SECRETS, IDS, IMAGES, RELEASES, PROTECTED, RESTRICTED, LIMITS, COUNT, PER_NODE = (rule.name for rule in RULES)
LOGIN_NODES = "Deployment dev-login"
SLURMCTLD = "StatefulSet dev-slurmctld"
CHART = "kubernetes:helm.sh/v3:Release h100-gpu-operator"
LOGIN = "spec.template.spec.containers[login]"
CTLD = "spec.template.spec.containers[slurmctld]"
CONFIG = "ConfigMap dev-slurm-config"
MARIADB = "StatefulSet h100-mariadb"

BROKEN = [
    pytest.param("dev", leak(CONFIG, "data.extra"), SECRETS, CONFIG, "data.extra", id="secret-value-in-a-config-map"),
    pytest.param("dev", leak(CONFIG, "data.extra", "key="), SECRETS, CONFIG, "data.extra", id="secret-value-inside-a-text"),
    pytest.param(
        "dev",
        leak(CONFIG, "metadata.annotations.hash"),
        SECRETS,
        CONFIG,
        "metadata.annotations.hash",
        id="in-an-annotation",
    ),
    pytest.param(
        *("dev", edit(CONFIG, "data.extra", Hidden("short")), SECRETS, CONFIG, "data.extra"),
        id="marked-value-in-a-config-map",
    ),
    pytest.param("dev", leak_result, SECRETS, CONFIG, "data.extra", id="random-value-in-a-config-map"),
    pytest.param("dev", leak_as_name, SECRETS, "ConfigMap key-[secret]", "name", id="secret-value-as-a-name"),
    pytest.param(
        *("dev", edit("ConfigMap dev-slurmdbd-config", "data.x", "A=1\nStoragePass=abc\n"), SECRETS),
        *("ConfigMap dev-slurmdbd-config", "data.x"),
        id="database-password-in-slurmdbd.conf",
    ),
    pytest.param(
        "dev",
        edit(CONFIG, "data.x", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\n"),
        *(SECRETS, CONFIG, "data.x"),
        id="private-key-in-a-config-map",
    ),
    pytest.param(
        *("dev", edit(LOGIN_NODES, f"{LOGIN}.env", {"name": "LDAP_PASSWORD", "value": "x"}), SECRETS),
        *(LOGIN_NODES, f"{LOGIN}.env[LDAP_PASSWORD]"),
        id="password-in-a-variable",
    ),
    *(
        pytest.param("dev", add(f"random:index/x:{kind}", "key"), IDS, f"{kind} key", "id", id=f"id-of-{kind}")
        for kind in ("RandomBytes", "RandomId", "RandomString", "RandomUuid")
    ),
    *(
        pytest.param("dev", edit(LOGIN_NODES, f"{LOGIN}.image", image), IMAGES, LOGIN_NODES, f"{LOGIN}.image", id=id_)
        for image, id_ in [
            ("registry.example:5000/slurm:latest", "latest"),
            ("registry.example:5000/slurm", "no-tag-but-a-port"),
            ("", "no-image"),
        ]
    ),
    *(
        pytest.param("dev", edit(LOGIN_NODES, f"{LOGIN}.image", image), RELEASES, LOGIN_NODES, f"{LOGIN}.image", id=id_)
        for image, id_ in [
            ("registry.example/slurm:26.05.3", "release-without-security-fixes"),
            ("registry.example:5000/slinky/slurmd:25.11.2-ubuntu24.04", "older-series-without-security-fixes"),
            ("slurm:23.11.11", "series-that-gets-no-fixes"),
        ]
    ),
    pytest.param(
        "dev",
        edit("NodeSet cpu", "spec.template.spec.containers[slurmd].image", "slurm:latest"),
        *(IMAGES, "NodeSet cpu", "spec.template.spec.containers[slurmd].image"),
        id="latest-in-a-node-set",
    ),
    pytest.param(
        "h100",
        edit(CHART, "version", GONE),
        IMAGES,
        CHART,
        "version",
        id="chart",
    ),
    *(
        pytest.param("h100", unprotect(name), PROTECTED, name, "protect", id=f"unprotected-{id_}")
        for name, id_ in [
            ("Namespace slurm", "namespace"),
            ("PersistentVolume slurm-h100-mount-datasets", "volume"),
            ("PersistentVolumeClaim h100-home", "claim"),
            ("Secret h100-munge", "key"),
            ("random:index/randomPassword:RandomPassword h100-munge-key", "random-value"),
            (MARIADB, "database"),
            ("StatefulSet h100-slurmctld", "queue"),
        ]
    ),
    *(
        pytest.param(
            "h100",
            edit(MARIADB, f"spec.persistentVolumeClaimRetentionPolicy.{when}", "Delete"),
            *(PROTECTED, MARIADB, f"spec.persistentVolumeClaimRetentionPolicy.{when}"),
            id=f"claims-deleted-{when}",
        )
        for when in ("whenDeleted", "whenScaled")
    ),
    *(
        pytest.param(
            "dev",
            edit(SLURMCTLD, f"{CTLD}.{path}", value),
            RESTRICTED,
            SLURMCTLD,
            f"{CTLD}.{path}",
            id=path,
        )
        for path, value in [
            ("securityContext.privileged", True),
            ("securityContext.allowPrivilegeEscalation", True),
            ("securityContext.runAsNonRoot", False),
            ("securityContext.runAsUser", 0),
            ("securityContext.seccompProfile", {"type": "Unconfined"}),
            ("securityContext.appArmorProfile", {"type": "Unconfined"}),
            ("securityContext.procMount", "Unmasked"),
        ]
    ),
    pytest.param(
        *("dev", edit(SLURMCTLD, f"{CTLD}.securityContext.capabilities", {"drop": ["NET_RAW"]}), RESTRICTED),
        *(SLURMCTLD, f"{CTLD}.securityContext.capabilities.drop"),
        id="capabilities-kept",
    ),
    pytest.param(
        *("dev", edit(SLURMCTLD, f"{CTLD}.ports", {"name": "x", "hostPort": 80}), RESTRICTED),
        *(SLURMCTLD, f"{CTLD}.ports[x].hostPort"),
        id="port-of-the-machine",
    ),
    pytest.param(
        *("dev", edit(LOGIN_NODES, f"{LOGIN}.securityContext.capabilities.add", "SYS_PTRACE"), RESTRICTED),
        *(LOGIN_NODES, f"{LOGIN}.securityContext.capabilities.add"),
        id="capability-beyond-the-exception",
    ),
    pytest.param(
        *("dev", edit(LOGIN_NODES, f"{LOGIN}.securityContext.privileged", True), RESTRICTED),
        *(LOGIN_NODES, f"{LOGIN}.securityContext.privileged"),
        id="privileged-beyond-the-exception",
    ),
    *(
        pytest.param("dev", edit("NodeSet cpu", f"spec.template.spec.{key}", True), RESTRICTED, "NodeSet cpu", key, id=key)
        for key in ("hostNetwork", "hostPID", "hostIPC")
    ),
    pytest.param(
        "dev",
        edit("NodeSet cpu", "spec.template.spec.volumes", {"name": "docker", "hostPath": {"path": "/run/containerd"}}),
        *(RESTRICTED, "NodeSet cpu", "spec.template.spec.volumes[docker].hostPath"),
        id="folder-of-the-machine",
    ),
    pytest.param(
        "dev",
        edit(LOGIN_NODES, "spec.template.spec.securityContext.sysctls", {"name": "kernel.msgmax", "value": "1"}),
        *(RESTRICTED, LOGIN_NODES, "spec.template.spec.securityContext.sysctls"),
        id="unsafe-sysctl",
    ),
    *(
        pytest.param(
            "dev",
            edit(SLURMCTLD, f"{CTLD}.resources.{path}", GONE),
            *(LIMITS, SLURMCTLD, f"{CTLD}.resources.{path}"),
            id=f"no-{path}",
        )
        for path in ("requests.cpu", "requests.memory", "limits.memory")
    ),
    pytest.param(
        *("dev", edit(LOGIN_NODES, f"{LOGIN}.resources", {}), LIMITS),
        *(LOGIN_NODES, f"{LOGIN}.resources.requests.memory"),
        id="exception-of-a-limit-is-none-of-requests",
    ),
    pytest.param(
        *(
            "dev",
            add("kubernetes:core/v1:ConfigMap", "x", times=MOST_RESOURCES),
            COUNT,
            "the stack",
            "not fewer than 500",
        ),
        id="500-resources",
    ),
    pytest.param("dev", add("kubernetes:core/v1:Pod", "x"), PER_NODE, "Pod x", "one node", id="pod"),
    pytest.param("dev", add("kubernetes:core/v1:Node", "x"), PER_NODE, "Node x", "one node", id="node"),
    pytest.param(
        *(
            "dev",
            add("kubernetes:core/v1:Service", "x", {"metadata": {"name": "gpu-1"}}),
            PER_NODE,
            "Service gpu-1",
            "metadata.name",
        ),
        id="service-called-like-a-node",
    ),
    pytest.param(
        "dev",
        add("kubernetes:core/v1:ConfigMap", "x", {"metadata": {"labels": {"slipway.dev/node": "burst-17"}}}),
        *(PER_NODE, "ConfigMap x", "metadata.labels"),
        id="label-with-a-node",
    ),
    pytest.param(
        *("dev", add("kubernetes:core/v1:Service", "peer", times=17), PER_NODE, "Service peer-0", "17 that differ by a number"),
        id="as-many-as-a-number",
    ),
]


@pytest.mark.parametrize(("stack", "break_it", "rule", "name", "words"), BROKEN)
def test_rule_refuses_what_breaks_it_at_its_place(stack: str, break_it: Edit, rule: str, name: str, words: str) -> None:
    broken = records(stack)
    break_it(broken)
    all_found = findings(broken, RULES)
    hits = [finding for finding in all_found if finding.rule == rule and name in str(finding) and words in str(finding)]
    assert hits, [str(finding) for finding in all_found]
    assert {finding.level for finding in hits} == {each.level for each in RULES if each.name == rule}
    assert not any(secret_text(broken) in str(finding) for finding in all_found if stack == "dev")


def test_every_rule_has_a_case_in_which_it_fails() -> None:
    assert {case.values[2] for case in BROKEN} == {rule.name for rule in RULES}


def test_all_findings_are_told_at_once() -> None:
    broken = records("dev")
    edit(LOGIN_NODES, f"{LOGIN}.image", "slurm:latest")(broken)
    edit("NodeSet cpu", "spec.template.spec.hostNetwork", True)(broken)
    assert told(broken) == [
        f'fixed-images: Deployment dev-login, {LOGIN}.image: "slurm:latest" has no fixed version. '
        "Name a tag that is never moved, or a digest.",
        "restricted-pods: NodeSet cpu, spec.template.spec.hostNetwork: shares it with the machine. "
        "Take it away, or accept it with LEVELS in slipway_policies.py.",
    ]


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("registry.example:5000/slurm:26.05", id="tag"),
        pytest.param("slurm@sha256:0a1b", id="digest"),
        pytest.param("slurm:latest@sha256:0a1b", id="digest-wins-over-latest"),
        pytest.param(UNKNOWN, id="unknown"),
    ],
)
def test_fixed_image_is_accepted(image: str) -> None:
    stack = records("dev")
    edit(LOGIN_NODES, f"{LOGIN}.image", image)(stack)
    assert told(stack) == []


def test_stack_without_deletion_protection_may_have_unprotected_state() -> None:
    assert not any(resource.protect for resource in records("dev"))
    assert told(records("dev")) == []


def test_what_a_program_declares_beside_the_cluster_is_advised_on() -> None:
    """Not refused, not even with the labels of a pod that has an exception."""
    [slurmd] = [each for each in records("dev") if str(each) == "NodeSet cpu"]
    mine = replace(slurmd, urn="urn:pulumi:dev::slipway::kubernetes:apps/v1:Deployment::mine", type="kubernetes:apps/v1:Deployment")
    all_found = findings([*records("dev"), mine], RULES)
    assert {finding.level for finding in all_found} == {"advisory"}
    assert any("privileged" in str(finding) for finding in all_found)


def test_every_exception_is_needed_by_a_stack() -> None:
    """A row that no variant needs is a hole for the next change."""
    stacks = [records(*(str(case.values[0]), *cast(tuple[str, ...], case.values[1]))) for case in VARIANTS]
    seen = {(each.pod.component, each.name) for stack in stacks for each in containers(stack)}
    assert PODS.keys() | UNLIMITED.keys() <= seen
    volumes = {volume["name"] for stack in stacks for pod in pods(stack) for volume in pod.spec.get("volumes", []) if "hostPath" in volume}
    assert {name.replace("mount-data", "mount-") for name in volumes} == HOST_PATHS.keys()
    assert all(row.reason for row in PODS.values())


def test_plans_of_10_and_10000_nodes_have_the_same_resources() -> None:
    def sized(nodes: int) -> list[str]:
        minimum = f"cluster.nodePools[0].eks.min={nodes}"
        plan = plan_of("h100", f"cluster.nodePools[0].max={nodes}", f"cluster.nodeSets[0].size={nodes}", minimum)
        return [re.sub(r"-[0-9a-f]{10}$", "-<content>", resource.urn) for resource in plan.resources]

    assert sized(10) == sized(10_000)


def test_what_is_found_in_several_places_is_told_once() -> None:
    broken = records("dev")
    for name in ("NodeSet cpu", "NodeSet gpu"):
        edit(name, "spec.template.spec.hostPID", True)(broken)
    edit("NodeSet cpu", "spec.template.spec.containers[slurmd].resources.requests.cpu", GONE)(broken)
    assert lines(findings(broken, RULES)) == [
        "restricted-pods: shares it with the machine. Take it away, or accept it with LEVELS in slipway_policies.py.",
        "  NodeSet cpu, spec.template.spec.hostPID",
        "  NodeSet gpu, spec.template.spec.hostPID",
        "requests-and-limits: NodeSet cpu, spec.template.spec.containers[slurmd].resources.requests.cpu: is missing. "
        "Say what the container needs: the scheduler counts with it.",
    ]


def test_preview_refuses_as_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    options = [part for key in (*KEYS, IMAGE.replace("root:1", "root:latest")) for part in ("--config", key)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["preview", "--stack", "dev", "--root", str(ROOT), "--offline", *options])
    said = capsys.readouterr().err
    assert ended.value.code == 1
    page, said = (re.sub(r"-[0-9a-f]{10}\b", "-<content>", text) for text in ((ROOT / "docs/operate/policies.md").read_text(), said))
    shown = "".join(f"    {line}\n" for line in said.removeprefix(" ✗ ").splitlines())
    assert shown in page
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \| [A-Z]", page, re.MULTILINE)) >= {rule.name for rule in RULES}


def test_odd_properties_break_no_rule() -> None:
    odd: dict[str, Any] = {
        "spec": {"template": {"spec": {"containers": [None, {"name": 1, "env": None, "securityContext": []}]}}},
        "metadata": None,
    }
    stack = [Resource("urn:x", "kubernetes:apps/v1:Deployment", "odd", json.loads(json.dumps(odd)))]
    assert {finding.level for finding in findings(stack, RULES)} == {"advisory"}


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("registry.example/slurm:26.05.4", id="first-fixed-release"),
        pytest.param("registry.example/slurm:26.05.12-debian", id="later-release"),
        pytest.param("registry.example/slurm:27.02.0", id="later-series"),
        pytest.param("registry.example/slurm:26.05", id="series-alone"),
        pytest.param("localhost/slipway/slurm:1882fc49d844", id="content"),
        pytest.param("registry.example/mariadb:11.4.2", id="another-program"),
    ],
)
def test_image_with_security_fixes_or_no_known_release_passes(image: str) -> None:
    assert slurm_releases.image_fault(image, slurm_releases.fixed_releases()) == ""


def test_newest_security_release_is_of_a_known_day() -> None:
    """The day is a date: whoever edits the file says when the releases were looked up."""
    table = json.loads((ROOT / "policies" / "slurm_releases.json").read_text())
    assert date.fromisoformat(table["read"]) >= date(2026, 11, 26)
