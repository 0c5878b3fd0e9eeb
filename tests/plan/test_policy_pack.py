"""The CrossGuard pack as the engine meets it, over gRPC: it accepts the example stacks, and says what the plain rules say of broken ones.

Source: the engine's NewPolicyAnalyzer and the CLI's pulumi-analyzer-policy-python (`python -u -m pulumi.policy <engine> .` in the pack's
folder, the port on the first line of stdout), and analyzer.proto. Secrets are marked on the wire; the SDK unwraps them.
"""

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import rpc
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from policies import pack
from policies.records import UNKNOWN, Hidden, Resource, findings
from policies.rules import RULES
from provider import __version__
from tests.plan.policy_edits import Edit, add, edit, leak, records, unprotect
from tests.plan.wheels import packages
from tests.support.patience import patience
from tests.support.project import ROOT

PACK = ROOT / "policies"
_MARK, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_DEADLINE_S = 60
ADVISORY, MANDATORY = analyzer_pb2.EnforcementLevel.ADVISORY, analyzer_pb2.EnforcementLevel.MANDATORY


@contextlib.contextmanager
def running(python: Path, folder: Path, **variables: str) -> Generator[Any]:
    """A pack that answers, until the end of the block."""
    command = [python, "-u", "-m", "pulumi.policy", "127.0.0.1:9", "."]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdecimal(), f"the pack printed {port!r} in place of its port"
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield analyzer_pb2_grpc.AnalyzerStub(channel)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def analyzer() -> Iterator[Any]:
    """The pack of this checkout."""
    with running(Path(sys.executable), PACK) as started:
        yield started


def wire(value: Any) -> Any:
    """A value as the engine sends it: secrets marked, unknown ones as its sentinel."""
    if isinstance(value, Hidden):
        return {_MARK: _SECRET, "value": wire(value.value)}
    if isinstance(value, Mapping):
        return {key: wire(each) for key, each in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [wire(each) for each in cast(Sequence[Any], value)]
    return rpc.UNKNOWN if value == UNKNOWN else value


def analyzed(analyzer: Any, stack: Sequence[Resource]) -> list[Any]:
    """What the pack says of a stack: one diagnostic for each fault."""
    sent: list[Any] = [analyzer_pb2.AnalyzerResource(type="pulumi:pulumi:Stack", urn="urn:stack", name="slipway-dev")]
    for each in stack:
        properties = struct_pb2.Struct()
        properties.update(wire(each.props))
        options = analyzer_pb2.AnalyzerResourceOptions(protect=each.protect)
        sent.append(analyzer_pb2.AnalyzerResource(type=each.type, urn=each.urn, name=each.name, properties=properties, options=options))
    request = analyzer_pb2.AnalyzeStackRequest(resources=sent)
    return list(analyzer.AnalyzeStack(request, timeout=_DEADLINE_S * patience()).diagnostics)


def test_pack_describes_every_rule(analyzer: Any) -> None:
    info = analyzer.GetAnalyzerInfo(empty_pb2.Empty(), timeout=_DEADLINE_S * patience())
    assert info.name == pack.NAME
    told = {each.name: (each.description, each.enforcementLevel) for each in info.policies}
    for rule in RULES:
        description, level = told.pop(rule.name)
        assert description.startswith(rule.description)
        assert rule.source in description
        assert level == (MANDATORY if rule.level == "mandatory" else ADVISORY)
    assert {name.removesuffix("-elsewhere") for name in told} == {rule.name for rule in RULES if not rule.is_for_all}
    assert {level for _, level in told.values()} == {ADVISORY}


@pytest.mark.parametrize("stack", ["dev", "h100"])
def test_pack_accepts_the_example_stacks(analyzer: Any, stack: str) -> None:
    assert analyzed(analyzer, records(stack)) == []


LOGIN = "spec.template.spec.containers[login]"


@pytest.mark.parametrize(
    ("stack", "break_it"),
    [
        pytest.param("dev", leak("ConfigMap dev-slurm-config", "data.extra"), id="secret"),
        pytest.param("dev", add("random:index/x:RandomBytes", "key"), id="id"),
        pytest.param("dev", edit("Deployment dev-login", f"{LOGIN}.image", "slurm:latest"), id="image"),
        pytest.param("dev", edit("Deployment dev-login", f"{LOGIN}.image", UNKNOWN), id="unknown-image"),
        pytest.param("h100", unprotect("PersistentVolumeClaim h100-home"), id="protection"),
        pytest.param("dev", edit("NodeSet cpu", "spec.template.spec.hostPID", True), id="restricted"),
        pytest.param("dev", edit("Deployment dev-login", f"{LOGIN}.resources", {}), id="resources"),
        pytest.param("dev", add("kubernetes:core/v1:ConfigMap", "x", times=500), id="count-and-numbers"),
        pytest.param("dev", add("kubernetes:core/v1:Pod", "x"), id="per-node"),
    ],
)
def test_pack_says_what_the_rules_say(analyzer: Any, stack: str, break_it: Edit) -> None:
    broken = records(stack)
    break_it(broken)
    expected = {
        (each.rule, each.fault.resource.urn if each.fault.resource else "", f"{each.fault.path}: " if each.fault.path else "")
        for each in findings(broken, RULES)
    }
    told = analyzed(analyzer, broken)
    assert {(each.policyName, each.urn) for each in told} == {(rule, urn) for rule, urn, _ in expected}
    assert all(any(each.message.find(path) >= 0 for _, _, path in expected) for each in told)
    assert {each.enforcementLevel for each in told} <= {MANDATORY}


def test_what_lies_beside_the_cluster_is_advice(analyzer: Any) -> None:
    [slurmd] = [each for each in records("dev") if str(each) == "NodeSet cpu"]
    type_ = "kubernetes:apps/v1:Deployment"
    told = analyzed(analyzer, [replace(slurmd, urn=f"urn:pulumi:dev::slipway::{type_}::mine", type=type_)])
    assert {each.enforcementLevel for each in told} == {ADVISORY}
    assert "restricted-pods-elsewhere" in {each.policyName for each in told}


def test_pack_takes_a_projects_own_rules(tmp_path: Path) -> None:
    """Those that docs/operate/policies.md shows."""
    page = (ROOT / "docs" / "operate" / "policies.md").read_text()
    block = page.partition("`slipway_policies.py`:\n\n")[2].partition("\n\n`")[0]
    file = tmp_path / "slipway_policies.py"
    file.write_text(textwrap.dedent(block))
    with running(Path(sys.executable), PACK, SLIPWAY_POLICIES_FILE=str(file)) as started:
        told = analyzed(started, records("dev"))
    assert {(each.policyName, each.enforcementLevel) for each in told} == {("no-node-ports", MANDATORY)}
    assert [each.message.splitlines()[-1] for each in told] == ["spec.type: is NodePort. Use a LoadBalancer."]


def test_pack_of_the_wheel_starts_too(installed: Path) -> None:
    folder = packages(installed) / "slipway" / "policies"
    with running(installed / "bin" / "python", folder) as started:
        assert started.GetAnalyzerInfo(empty_pb2.Empty(), timeout=_DEADLINE_S * patience()).name == pack.NAME


def test_pack_has_the_version_of_slipway_and_a_venv_of_its_own() -> None:
    """With the runtime's name alone the CLI takes `python3` of PATH, which has no pulumi-policy."""
    about = yaml.safe_load((PACK / "PulumiPolicy.yaml").read_text())
    assert about["runtime"] == {"name": "python", "options": {"toolchain": "pip", "virtualenv": "venv"}}
    assert about["version"] == __version__
    assert (PACK / "requirements.txt").read_text().startswith("pulumi-policy")
