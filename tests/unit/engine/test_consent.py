"""Whether a verb may change a cluster: asked once where it is not the local one, never without somebody to ask, never another stack's."""

import shutil
from pathlib import Path

import pytest

from cli import main as cli
from engine.consent import Answer, Situation, is_local, plan_question, refusal, refuse_other
from engine.faults import SlipwayError
from engine.kubeconfig import Target
from engine.plan import Plan, Resource
from engine.render import Key
from tests.support.engine.canned import CannedServer
from tests.support.engine.recorded import SMALL

NAMESPACE, KEEPER = Key("", "Namespace", "", "slurm"), Key("", "Secret", "slurm", "slipway-slipway-dev-random")
PROD = Target("prod", "https://prod.example:6443")


def situation(
    verb: str,
    *,
    yes: bool = False,
    terminal: bool = False,
    local: bool = False,
    known: bool = False,
    loses: bool = False,
    harms: bool = False,
) -> Situation:
    assert verb in ("up", "destroy")
    lost = ("PersistentVolumeClaim slurm/home",) if loses else ()
    return Situation(verb, yes, terminal, local, known, lost, ("gpu-0: 1 job",) if harms else ())


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(situation("up", local=True), "yes", id="local-cluster-is-the-checkouts-own"),
        pytest.param(situation("up", terminal=True), "ask", id="first-up-elsewhere-asks"),
        pytest.param(situation("up"), "refuse", id="first-up-elsewhere-without-terminal"),
        pytest.param(situation("up", yes=True), "yes", id="first-up-elsewhere-with-yes"),
        pytest.param(situation("up", known=True, terminal=True), "yes", id="second-up-is-not-asked-again"),
        pytest.param(situation("up", known=True), "yes", id="second-up-in-ci"),
        pytest.param(situation("up", local=True, known=True, terminal=True, loses=True), "ask", id="up-that-deletes-data-asks"),
        pytest.param(situation("up", local=True, known=True, loses=True), "refuse", id="up-that-deletes-data-without-terminal"),
        pytest.param(situation("up", known=True, yes=True, loses=True), "yes", id="up-that-deletes-data-with-yes"),
        pytest.param(situation("up", local=True, known=True, terminal=True, harms=True), "ask", id="up-that-ends-jobs-asks"),
        pytest.param(situation("up", local=True, known=True, harms=True), "refuse", id="up-that-ends-jobs-without-terminal"),
        pytest.param(situation("up", known=True, yes=True, harms=True), "yes", id="up-that-ends-jobs-with-yes"),
        pytest.param(situation("destroy", local=True), "refuse", id="destroy-without-terminal-even-locally"),
        pytest.param(situation("destroy", known=True), "refuse", id="destroy-without-terminal"),
        pytest.param(situation("destroy", local=True, known=True, terminal=True), "ask", id="destroy-always-asks"),
        pytest.param(situation("destroy", yes=True), "yes", id="destroy-with-yes"),
    ],
)
def test_who_is_asked(now: Situation, expected: Answer) -> None:
    assert plan_question(now) == expected


def test_a_refusal_names_the_cluster_and_the_way_on() -> None:
    said = refusal(situation("up"), "slipway/dev", PROD, "slurm")
    assert said.startswith("Nothing was changed: ")
    assert 'context "prod", server https://prod.example:6443, namespace slurm' in said
    assert "--yes" in said
    assert refusal(situation("destroy"), "slipway/dev", PROD, "slurm").startswith("Nothing was deleted: ")
    assert "this `up` ends running jobs" in refusal(situation("up", harms=True), "slipway/dev", PROD, "slurm")
    assert "this `up` deletes data" in refusal(situation("up", loses=True), "slipway/dev", PROD, "slurm")


def test_only_the_checkouts_own_kubeconfig_and_context_are_local(tmp_path: Path) -> None:
    mine = tmp_path / ".slipway" / "kubeconfig"
    mine.parent.mkdir()
    mine.write_text("")
    local = Target("slipway-local", "https://198.18.0.1:6443")
    assert is_local(tmp_path, str(mine), local)
    assert not is_local(tmp_path, str(mine), PROD)
    assert not is_local(tmp_path, str(tmp_path / "other"), local)
    assert not is_local(tmp_path, None, local)


def stack(identifier: str) -> Plan:
    inputs = {"clusterIdentifier": identifier} if identifier else {}
    return Plan("slipway", "dev", (Resource("urn:p", "pulumi:providers:kubernetes", "dev", inputs=inputs),), {})


@pytest.mark.parametrize("at", [pytest.param(NAMESPACE, id="namespace"), pytest.param(KEEPER, id="kept-values")])
def test_a_cluster_of_another_identifier_is_refused_with_the_remedy(at: Key) -> None:
    with pytest.raises(SlipwayError, match="Nothing was changed") as raised:
        refuse_other(stack("slipway-dev"), {at: "ml-us-east-2"}, 'context "prod"')
    said = str(raised.value)
    assert f"{at}: ml-us-east-2" in said
    assert f"annotate --overwrite {at.kind.lower()} {at.name} slipway.dev/cluster-identifier=slipway-dev" in said


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [pytest.param("a", "a", id="same"), pytest.param("a", "", id="not-recorded-yet"), pytest.param("", "a", id="not-said")],
)
def test_the_same_or_no_identifier_is_accepted(ours: str, theirs: str) -> None:
    refuse_other(stack(ours), {NAMESPACE: theirs, KEEPER: theirs}, "here")


@pytest.mark.parametrize(
    ("verb", "words"),
    [pytest.param("up", "Nothing was changed", id="up"), pytest.param("destroy", "Nothing was deleted", id="destroy")],
)
def test_without_a_terminal_the_cluster_is_only_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, canned: CannedServer, verb: str, words: str
) -> None:
    here = Path(shutil.copytree(SMALL, tmp_path / "small"))
    canned.serve({"v1": ["Namespace", "ConfigMap", "Secret", "PersistentVolumeClaim"], "apps/v1": ["StatefulSet"]})
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--stack", "dev", "-C", str(here), "--kubeconfig", str(canned.kubeconfig(tmp_path))])
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert words in said.err
    assert f'context "canned", server {canned.url}' in said.out
    assert {method for method, *_ in canned.requests} == {"GET"}
