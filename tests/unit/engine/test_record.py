"""The real program is run and written down: options, dependencies, aliases, secrets and unknowns as the engine would see them."""

import base64
from pathlib import Path

import pytest

from engine import project, record
from engine.faults import SlipwayError
from engine.plan import Plan, Secret, Unknown
from tests.support.engine.recorded import SMALL, Recorder, by_name

APP = "urn:pulumi:dev::small::small:index:App::app"


def program(tmp_path: Path, text: str) -> Plan:
    """Records a program written for one test."""
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text("import pulumi\nimport pulumi_kubernetes as k8s\nimport pulumi_random as random\n" + text)
    return record.record(project.load(tmp_path, "dev")).plan


def test_children_carry_parent_provider_and_qualified_urn(recorded: Recorder) -> None:
    found = by_name(recorded(), "a", "StatefulSet")
    assert found.parent == APP
    assert found.urn == "urn:pulumi:dev::small::small:index:App$kubernetes:apps/v1:StatefulSet::a"
    assert found.options == {"provider": "urn:pulumi:dev::small::pulumi:providers:kubernetes::cluster"}


def test_dependencies_are_the_declared_and_the_implied(recorded: Recorder) -> None:
    names = [urn.rpartition("::")[2] for urn in by_name(recorded(), "a", "StatefulSet").dependencies]
    assert names == ["scripts", "key"]


def test_protection_is_written_down(recorded: Recorder) -> None:
    assert by_name(recorded("app.protect=true"), "data").options["protect"] is True
    assert "protect" not in by_name(recorded(), "data").options


def test_values_of_a_kubernetes_secret_are_secret_and_its_keys_are_not(recorded: Recorder) -> None:
    data = by_name(recorded(), "key", ":Secret").inputs["data"]
    assert set(data) == {"key", "password"}
    assert all(isinstance(value, Secret) for value in data.values())
    assert len(base64.b64decode(data["key"].value)) == 64


def test_exports_of_secrets_stay_secret_and_of_cloud_outputs_unknown(recorded: Recorder) -> None:
    outputs = recorded("app.cloud=true").outputs
    assert isinstance(outputs["key"], Secret)
    assert isinstance(outputs["queue"], Unknown)
    assert outputs["namespace"] == "small"


def test_an_object_without_a_name_is_named_by_its_content(recorded: Recorder) -> None:
    first, same, other = recorded(), recorded("app.replicas=5"), recorded("greeting=howdy")
    names = [by_name(plan, "scripts").inputs["metadata"]["name"] for plan in (first, same, other)]
    assert names[0] == names[1] != names[2]
    mounted = by_name(other, "a", "StatefulSet").inputs["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
    assert mounted == names[2]


@pytest.mark.parametrize("preview", [True, False])
def test_the_given_random_value_reaches_the_object(recorded: Recorder, preview: bool) -> None:
    def value_of(key: str, _others: object, _type: object, _inputs: object) -> bytes:
        return key.encode()[:20]

    plan = recorded(value_of=value_of, preview=preview)
    key = base64.b64decode(by_name(plan, "key", ":Secret").inputs["data"]["key"].value)
    assert key.startswith(b"RandomBytes.app-key")


def test_a_parents_alias_is_inherited_with_the_name_that_follows_it(tmp_path: Path) -> None:
    plan = program(
        tmp_path,
        """
class App(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("demo:index:App", name, None, opts)
        self.key = random.RandomBytes(f"{name}-key", length=8, opts=pulumi.ResourceOptions(parent=self))
        random.RandomId("fixed", byte_length=4, opts=pulumi.ResourceOptions(parent=self, aliases=[pulumi.Alias(name="loose")]))
App("new", pulumi.ResourceOptions(aliases=[pulumi.Alias(name="old")]))
""",
    )
    inside = "urn:pulumi:dev::demo::demo:index:App$random:index/"
    assert by_name(plan, "new", "App").aliases == ("urn:pulumi:dev::demo::demo:index:App::old",)
    assert by_name(plan, "new-key").aliases == (f"{inside}randomBytes:RandomBytes::old-key",)
    assert f"{inside}randomId:RandomId::loose" in by_name(plan, "fixed").aliases


def test_a_value_is_asked_for_under_its_old_names_too(tmp_path: Path) -> None:
    program(tmp_path, 'random.RandomBytes("new", length=8, opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="old")]))')
    asked: list[tuple[str, tuple[str, ...]]] = []

    def value_of(key: str, others: tuple[str, ...], _type: object, _inputs: object) -> bytes:
        asked.append((key, others))
        return b"12345678"

    record.record(project.load(tmp_path, "dev"), value_of)
    assert asked[0][0].startswith("RandomBytes.new.")
    assert [key.rpartition(".")[0] for key in asked[0][1]] == ["RandomBytes.old"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('raise pulumi.RunError("2 mistakes\\n  a: b")', "2 mistakes\n  a: b", id="run-error-alone"),
        pytest.param('def deep():\n    {}["x"]\ndeep()', "__main__.py:5: KeyError: 'x'", id="bug-with-its-line"),
        pytest.param("if:", "__main__.py:4: invalid syntax", id="syntax"),
        pytest.param('pulumi.Config().require("region")', "Missing required configuration variable 'demo:region'", id="missing-config"),
        pytest.param('pulumi.log.error("no such zone")', "no such zone", id="logged-error"),
        pytest.param("raise SystemExit(3)", "exit code 3", id="exit"),
        pytest.param(
            'random.RandomBytes("a", length=1)\nrandom.RandomBytes("a", length=1)', "Two resources have the same URN", id="one-urn-twice"
        ),
        pytest.param('random.RandomPet("a")', "RandomPet is made by the Pulumi CLI only", id="random-pet"),
        pytest.param('pulumi.Output.from_input(1).apply(lambda _: {}["late"])', "__main__.py:4: KeyError: 'late'", id="bug-in-apply"),
        pytest.param(
            'random.RandomId("a", byte_length=1, opts=pulumi.ResourceOptions(transforms=[lambda args: None]))', "transforms", id="transform"
        ),
        pytest.param(
            'hook = pulumi.ResourceHook("check", lambda args: None)\n'
            'random.RandomId("a", byte_length=1, opts=pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[hook])))',
            "hook check would be run by Pulumi's engine",
            id="hook",
        ),
        pytest.param('pulumi.runtime.invoke("aws:ec2/getAmi:getAmi", {})', "aws:ec2/getAmi:getAmi, which only a provider", id="invoke"),
    ],
)
def test_what_the_program_says_is_shown_without_the_sdks_inside(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SlipwayError) as caught:
        program(tmp_path, text)
    assert said in str(caught.value)
    assert "site-packages" not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_warnings_are_kept_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: demo\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("")
    (tmp_path / "__main__.py").write_text('import pulumi\npulumi.log.warn("careful")')
    assert record.record(project.load(tmp_path, "dev")).messages == ("careful",)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: demo\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("")
    with pytest.raises(SlipwayError, match=r"__main__\.py: the project's program does not exist"):
        record.record(project.load(tmp_path, "dev"))


def test_two_runs_of_one_program_are_the_same() -> None:
    found = project.load(SMALL, "dev")
    assert record.record(found).plan == record.record(found).plan
