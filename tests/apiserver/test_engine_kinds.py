"""The verbs with a kind that the stack itself brings, against a real API server: the test is the kind's controller.

The stack is tests/apiserver/fixtures/kinds.
"""

import contextlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import main as cli
from engine.api import Api, Served
from engine.render import Sort
from tests.support.apiserver.server import ApiServer
from tests.support.patience import patience

FIXTURE = Path(__file__).parent / "fixtures" / "kinds"


@dataclass
class Widgets:
    """The stack in a namespace, and so with a kind, of one test's own."""

    server: ApiServer
    capsys: pytest.CaptureFixture[str]
    folder: Path
    namespace: str
    group: str = ""
    extra: list[str] = field(default_factory=list[str])
    said: str = ""
    hearing: threading.RLock = field(default_factory=threading.RLock)
    """A test's steps hear beside the verb."""

    def run(self, verb: str, *options: str, code: int = 0) -> str:
        """One verb, and all that it printed."""
        where = ["--stack", "dev", "-C", str(self.folder)]
        where += ["--kubeconfig", str(self.server.kubeconfig()), "--context", "bare", "-c", f"app.namespace={self.namespace}", *self.extra]
        # A cluster not of this checkout's own, and without nodes: `up` would ask, and would miss them.
        options = ("--yes", "--ignore-missing", *options) if verb == "up" else options
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, *where, *options])
        with self.hearing:
            said, self.said = self.heard(), ""
        assert ended.value.code == code, said
        return said

    def heard(self) -> str:
        """What the verb has printed up to now."""
        with self.hearing:
            new = self.capsys.readouterr()
            self.said += new.out + new.err
            return self.said

    @property
    def path(self) -> str:
        where = "" if "app.scope=Cluster" in self.extra else f"/namespaces/{self.namespace}"
        return f"/apis/{self.group or self.namespace}.example.com/v1{where}/widgets"

    def get(self, name: str = "one") -> dict[str, Any] | None:
        """A widget as it is; None for one that is not there."""
        with self.server.client() as client:
            answer = client.get(f"{self.path}/{name}")
        return answer.json() if answer.status_code == 200 else None

    def say(self, name: str = "one", ready: bool = True, **status: Any) -> None:
        """The controller's word on a widget."""
        one = self.get(name)
        assert one is not None
        generation = one["metadata"]["generation"]
        condition = {"type": "Ready", "status": str(ready), "reason": "Told", "message": "by the test"}
        body = {**one, "status": {"observedGeneration": generation, "conditions": [condition], **status}}
        with self.server.client() as client:
            answer = client.put(f"{self.path}/{name}/status", json=body)
        assert answer.status_code == 200, answer.text

    def let_go(self, name: str = "one") -> None:
        """Takes the finalizers off."""
        headers = {"Content-Type": "application/merge-patch+json"}
        with self.server.client() as client:
            client.patch(f"{self.path}/{name}", json={"metadata": {"finalizers": None}}, headers=headers)

    @contextmanager
    def controlled(self, *steps: Callable[[], object]) -> Generator[None]:
        """Runs the steps beside the block, each as soon as it can be done, the last one again and again."""
        ended = threading.Event()

        def work() -> None:
            left = list(steps)
            while not ended.wait(0.1):
                with contextlib.suppress(AssertionError):
                    left[0]()
                    left = left[1:] or left

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            ended.set()
            worker.join()


def within(seconds: float) -> tuple[str, str]:
    """For how long a verb is to wait, by the machine's pace."""
    return "--timeout", f"{seconds * patience():.0f}"


@pytest.fixture
def widgets(bare: ApiServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, request: pytest.FixtureRequest) -> Widgets:
    """The stack, not up yet."""
    namespace = f"kinds-{abs(hash(request.node.name)) % 10**8}"
    bare.make_namespace(namespace)
    return Widgets(bare, capsys, Path(shutil.copytree(FIXTURE, tmp_path / "kinds")), namespace)


def test_first_preview_shows_objects_of_an_unknown_kind_as_new(widgets: Widgets) -> None:
    said = widgets.run("preview")
    assert f"kubernetes:{widgets.namespace}.example.com/v1:Widget  one" in said
    assert said.endswith("\n3 to create\n")


def test_first_up_creates_the_kind_then_its_objects_and_waits_for_them(widgets: Widgets) -> None:
    def unseen() -> None:
        assert "Widget one: not seen by its controller yet" in widgets.heard()

    def progressing() -> None:
        widgets.say(ready=False, phase="Progressing", why="1 of 2 nodes are registered.")

    def ready() -> None:
        assert "Widget one: Progressing: 1 of 2 nodes are registered." in widgets.heard()
        widgets.say(phase="Ready", why="All is well.")

    with widgets.controlled(unseen, progressing, ready):
        said = widgets.run("up", *within(120))
    assert f"CustomResourceDefinition widgets.{widgets.namespace}.example.com created, and its kind is served" in said
    assert f"Widget {widgets.namespace}/one ready" in said
    assert "3 created" in said
    assert "nothing to change: 3 objects are as declared" in widgets.run("up")
    assert "Nothing to change: 3 unchanged" in widgets.run("preview")


def test_unready_object_is_reported_with_the_controllers_message(widgets: Widgets) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    widgets.say(ready=False, phase="Degraded", why="No node has room.")
    said = widgets.run("up", "--timeout", "2", code=1)
    assert re.search(r"Not ready after \d+ s", said)
    assert "Widget one: Degraded: No node has room." in said
    with widgets.controlled(widgets.say):
        assert "nothing to change" in widgets.run("up", *within(120))


def test_every_expression_of_a_wait_counts(widgets: Widgets) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    widgets.extra = ["-c", 'app.wait=["condition=Ready","jsonpath={.status.address}"]']
    assert "Widget one: {.status.address} is not there yet" in widgets.run("up", "--timeout", "2", code=1)


def test_wait_with_bad_syntax_is_refused_before_anything_is_created(widgets: Widgets) -> None:
    said = widgets.run("up", "-c", "app.wait=Ready", code=1)
    assert '"Ready" is neither condition=... nor jsonpath=...' in said
    assert "not found" in widgets.server.run_kubectl("-n", widgets.namespace, "get", "configmap/files", check=False)


def test_kind_and_an_object_that_needs_its_change_go_up_together(widgets: Widgets) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    said = widgets.run("preview", "-c", "app.wide=true")
    assert "the API server can check it only after its CustomResourceDefinition has changed" in said
    assert "+ spec.colour: red" in said
    with widgets.controlled(widgets.say):
        widgets.run("up", "-c", "app.wide=true", *within(120))
    one = widgets.get()
    assert one is not None
    assert one["spec"] == {"size": 2, "colour": "red"}


def test_bad_object_of_a_known_kind_is_refused_by_name(widgets: Widgets) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    said = widgets.run("up", "-c", "app.size=10", code=1)
    assert "nothing was changed" in said
    assert f"Widget {widgets.namespace}/one" in said
    assert "spec.size" in said


def test_object_of_a_kind_that_nobody_brings_is_refused_by_name(widgets: Widgets) -> None:
    said = widgets.run("up", "-c", "app.definition=false", code=1)
    assert "does not know the kind of these 1 objects, and the stack brings no CustomResourceDefinition for it" in said
    assert f"Widget {widgets.namespace}/one" in said


def test_pruned_object_says_which_finalizer_holds_it(widgets: Widgets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.removal._LEAVING_S", 0.5)
    finalizers = ("-c", 'app.finalizers=["example.com/drain"]')
    with widgets.controlled(lambda: widgets.say(phase="Ready", why="All is well.")):
        widgets.run("up", *finalizers, *within(120))
    said = widgets.run("up", "-c", "app.widgets=[]")
    assert f"Widget {widgets.namespace}/one waits for its finalizer example.com/drain (Ready: All is well.); its deletion continues" in said
    assert "nothing to change" in widgets.run("up", "-c", "app.widgets=[]")
    widgets.let_go()
    assert widgets.get() is None


def test_destroy_waits_for_finalizers_and_leaves_the_kind_to_the_next_up(widgets: Widgets) -> None:
    finalizers = ("-c", 'app.finalizers=["example.com/drain"]')
    with widgets.controlled(lambda: widgets.say(phase="Deleting", why="one-1 still busy.")):
        widgets.run("up", *finalizers, *within(120))
    said = widgets.run("destroy", "--yes", "--timeout", "10", code=1)
    assert re.search(r"Not gone after \d+ s; the deletion continues", said)
    assert f"Widget {widgets.namespace}/one waits for its finalizer example.com/drain (Deleting: one-1 still busy.)" in said
    assert f"CustomResourceDefinition widgets.{widgets.namespace}.example.com stays in the cluster" in said
    widgets.let_go()
    assert f"ConfigMap {widgets.namespace}/files deleted" in widgets.run("destroy", "--yes", *within(120))
    with widgets.controlled(widgets.say):
        assert "2 created" in widgets.run("up", *within(120))


def test_kind_that_another_stack_brings_is_left_to_it(widgets: Widgets, tmp_path: Path) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    other = Widgets(widgets.server, widgets.capsys, widgets.folder, f"{widgets.namespace}-b", group=widgets.namespace)
    other.extra = ["-c", f"app.group={widgets.namespace}"]
    widgets.server.make_namespace(other.namespace)
    said = other.run("up", code=1)
    assert "belongs to another stack. Let one stack bring the kind and leave it out of this one, or take it over with --adopt." in said
    with other.controlled(other.say):
        assert "2 created" in other.run("up", "-c", "app.definition=false", *within(120))


def test_kind_that_is_taken_over_is_the_other_stacks_from_then_on(widgets: Widgets) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    other = Widgets(widgets.server, widgets.capsys, widgets.folder, f"{widgets.namespace}-b", group=widgets.namespace)
    other.extra = ["-c", f"app.group={widgets.namespace}"]
    widgets.server.make_namespace(other.namespace)
    with other.controlled(other.say):
        assert "updated, and its kind is served" in other.run("up", "--adopt", *within(120))
    assert "nothing to change" in other.run("up", *within(120))
    assert "belongs to another stack" in widgets.run("up", code=1)


def test_object_of_a_kind_without_namespaces_is_the_same_the_second_time(widgets: Widgets) -> None:
    widgets.extra = ["-c", "app.scope=Cluster"]
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    made = widgets.get()
    assert made is not None
    assert "Nothing to change: 3 unchanged" in widgets.run("preview")
    with widgets.controlled(widgets.say):
        said = widgets.run("up", "-c", "app.size=3", *within(120))
    assert "Widget one updated" in said
    assert "Widget one deleted" not in said
    found = widgets.get()
    assert found is not None
    assert (found["metadata"]["uid"], found["spec"]) == (made["metadata"]["uid"], {"size": 3})
    assert "Widget one deleted" in widgets.run("up", "-c", "app.widgets=[]")
    assert widgets.get() is None


def test_kind_that_is_not_listed_for_a_while_is_kept_in_mind(widgets: Widgets, monkeypatch: pytest.MonkeyPatch) -> None:
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    kind = Sort(f"{widgets.namespace}.example.com", "Widget")
    with monkeypatch.context() as patch:
        all_kinds = Api.kinds

        def other_kinds(api: Api, again: bool = False) -> Mapping[Sort, Served]:
            return {sort: how for sort, how in all_kinds(api, again).items() if sort != kind}

        patch.setattr(Api, "kinds", other_kinds)
        left_out = ("-c", "app.widgets=[]", "-c", "app.definition=false")
        said = widgets.run("up", *left_out)
    assert f"the API server does not list these kinds now, so no object of them was looked for or deleted: {kind}." in said
    assert widgets.get() is not None
    assert f"Widget {widgets.namespace}/one deleted" in widgets.run("up", *left_out)
    assert widgets.get() is None


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(("create",), id="first-made"),
        pytest.param(("apply", "--server-side", "--force-conflicts"), id="taken-over"),
        pytest.param(("replace",), id="changed"),
    ],
)
def test_kinds_of_the_pulumi_cli_and_of_the_engine_are_each_others(widgets: Widgets, write: tuple[str, ...]) -> None:
    """What pulumi-kubernetes 4.34 does with a kind and a class: it makes an object by a plain create, takes over one that exists by a
    forced server-side apply, and changes a definition by a replace, each under a field manager of its own. It leaves no mark of ours."""
    name = f"class-{widgets.namespace}"
    widgets.extra = ["-c", "app.adopts=true", "-c", f"app.classes={json.dumps([name])}"]
    definition = f"widgets.{widgets.namespace}.example.com"
    rendered = [one for one in yaml.safe_load_all(widgets.run("render")) if one["kind"] in ("CustomResourceDefinition", "RuntimeClass")]
    for one in rendered:
        one["metadata"].pop("annotations", None)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": rendered})
    if write[0] != "create":
        widgets.server.run_kubectl("create", "-f", "-", stdin=text)
    widgets.server.run_kubectl(*write, "--field-manager", "pulumi-kubernetes-5f1e", "-f", "-", stdin=text)
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    assert "nothing to change" in widgets.run("up")
    # The CLI again, as its next `up` after `destroy` does it.
    forced = ("apply", "--server-side", "--force-conflicts", "--field-manager", "pulumi-kubernetes-5f1e", "-f", "-")
    widgets.server.run_kubectl(*forced, stdin=text)
    with widgets.controlled(widgets.say):
        widgets.run("up", *within(120))
    said = widgets.run("destroy", "--yes", *within(60))
    assert f"CustomResourceDefinition {definition} stays in the cluster" in said
    assert f"RuntimeClass {name} stays in the cluster" in said
    widgets.server.run_kubectl(*forced, stdin=text)


def test_foreign_class_is_adopted_only_if_the_stack_says_so(widgets: Widgets) -> None:
    name = f"class-{widgets.namespace}"
    widgets.extra = ["-c", f"app.classes={json.dumps([name])}"]
    made = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
    widgets.server.run_kubectl("create", "-f", "-", stdin=json.dumps(made))
    assert f"RuntimeClass {name} exists and was not made by this stack" in widgets.run("up", code=1)
    with widgets.controlled(widgets.say):
        assert f"RuntimeClass {name} updated" in widgets.run("up", "-c", "app.adopts=true", *within(120))
