"""Policies at the verbs: what is mandatory ends them before any cluster is asked; what is advice is told; a project's own rules."""

import json
import shutil
from pathlib import Path

import pytest

from names import variables
from policies.rules import RULES, OwnRulesError, rules_for
from tests.support.engine.canned import CannedServer
from tests.support.engine.recorded import SMALL
from tests.unit.cli.verbs import run

RULE = """
def no_claims(resources):
    'Claims belong to another stack.'
    for resource in resources:
        if resource.kind == "PersistentVolumeClaim":
            yield resource, "spec", "is a claim.", "Declare it elsewhere."

POLICIES = [no_claims]
"""
TOLD = "no-claims: PersistentVolumeClaim data, spec: is a claim. Declare it elsewhere."


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A copy of the fixture stack."""
    return Path(shutil.copytree(SMALL, tmp_path / "small"))


@pytest.mark.parametrize("verb", ["preview", "up"])
def test_mandatory_finding_ends_a_verb_before_the_cluster_is_asked(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, canned: CannedServer, verb: str
) -> None:
    (here / "slipway_policies.py").write_text(RULE)
    where = ("--stack", "dev", "-C", str(here), "--kubeconfig", str(canned.kubeconfig(tmp_path)))
    said = run(capsys, verb, *where, code=1)
    assert f"small/dev: policies refuse 1 place\n  {TOLD}\n" in said
    assert "to create" not in said
    assert canned.requests == []


def test_advice_is_told_and_ends_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "slipway_policies.py").write_text(RULE + "LEVELS = {'no-claims': 'advisory'}\n")
    files = ("--json", str(here / "plan.json"), "--markdown", str(here / "plan.md"))
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline", *files)
    assert f"warning: {TOLD}\n" in said
    assert TOLD in json.loads((here / "plan.json").read_text())["advice"]
    assert f"- {TOLD}\n" in (here / "plan.md").read_text()


def test_what_is_not_slipways_own_is_advised_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline", "-c", "app.image=slurm:latest")
    assert 'warning: fixed-images: StatefulSet a, spec.template.spec.containers[main].image: "slurm:latest"' in said
    assert "warning: secrets-never-as-ids: random:index/randomBytes:RandomBytes app-key, id:" in said


def test_project_can_make_a_rule_of_slipway_binding_for_all(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "slipway_policies.py").write_text("LEVELS = {'fixed-images': 'mandatory'}\n")
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline", "-c", "app.image=slurm:latest", code=1)
    assert "policies refuse 2 places" in said
    assert "secrets-never-as-ids" not in said


def test_state_that_was_accepted_before_is_not_judged(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "slipway_policies.py").write_text(RULE)
    monkeypatch.setenv(variables.POLICIES, "off")
    assert "warning" not in run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline")


def test_project_without_a_file_has_slipways_rules(tmp_path: Path) -> None:
    assert rules_for(tmp_path) is RULES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("POLICIES = [", "SyntaxError", id="syntax"),
        pytest.param("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'", id="import"),
        pytest.param("POLICIES = 'x'", "POLICIES is 'x'. Give a list of functions.", id="no-list"),
        pytest.param("POLICIES = ['x']", "POLICIES has 'x'. Give functions with a name in lower case and a docstring.", id="no-function"),
        pytest.param("POLICIES = [lambda resources: []]", "Give functions with a name in lower case and a docstring.", id="no-name"),
        pytest.param("def a(resources): return []\nPOLICIES = [a]", "and a docstring.", id="no-docstring"),
        pytest.param("LEVELS = ['x']", "LEVELS is ['x']. Give a dictionary", id="levels-no-dictionary"),
        pytest.param("LEVELS = {'x': 'advisory'}", "LEVELS names 'x', which is not a rule. The rules are: secrets-only", id="no-such-rule"),
        pytest.param("LEVELS = {'fixed-images': 'off'}", "is 'off'. Give mandatory or advisory.", id="no-such-level"),
    ],
)
def test_file_that_cannot_be_used_is_a_mistake_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "slipway_policies.py"
    file.write_text(text)
    with pytest.raises(OwnRulesError) as caught:
        rules_for(tmp_path)
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param("return [resource.spec for resource in resources]", "AttributeError: 'Resource' object has no", id="bug"),
        pytest.param("return ['x']", "TypeError", id="no-fault"),
    ],
)
def test_rule_that_fails_is_named(here: Path, capsys: pytest.CaptureFixture[str], body: str, words: str) -> None:
    (here / "slipway_policies.py").write_text(f"def my_rule(resources):\n    'Something.'\n    {body}\n\nPOLICIES = [my_rule]\n")
    said = run(capsys, "preview", "--stack", "dev", "-C", str(here), "--offline", code=1)
    assert "slipway_policies.py: my_rule: " in said
    assert words in said
    assert "Traceback" not in said
