"""The client against a server that plays slurmrestd over real HTTP: each bad answer is an error of its own kind, never an empty list."""

import asyncio
import json
from typing import Any

import pytest
from prometheus_client import REGISTRY

from controllers.slurm.client import SlurmClient, SlurmError, SlurmRefused, SlurmUnauthorized, SlurmUnreachable
from controllers.slurm.metrics import request_name
from tests.support.controllers.slurm.fake_rest import FAULT, NODE, NODES, FakeRest
from tests.support.patience import patience


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("versions", "used"),
    [pytest.param(("v0.0.44", "v0.0.45"), "v0.0.45", id="both"), pytest.param(("v0.0.44",), "v0.0.44", id="only-the-older")],
)
async def test_best_version_that_the_server_has_is_used(client: SlurmClient, rest: FakeRest, versions: tuple[str, ...], used: str) -> None:
    rest.versions = versions
    await client.nodes()
    assert rest.asked[-1][1] == f"/slurm/{used}/nodes/"


@pytest.mark.anyio
async def test_server_without_a_version_that_is_read_here_is_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.versions = ("v0.0.39",)
    with pytest.raises(SlurmUnreachable, match=r"none of v0\.0\.45, v0\.0\.44"):
        await client.nodes()


@pytest.mark.anyio
async def test_unchanged_is_none_and_asks_with_the_time(client: SlurmClient, rest: FakeRest) -> None:
    rest.answers["nodes/"] = (304, b"")
    assert await client.nodes(100) is None
    assert rest.asked[-1][1].endswith("nodes/?update_time=100")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(200, {**NODES, "nodes": []}, SlurmUnreachable, id="empty-list"),
        pytest.param(404, {"errors": []}, SlurmRefused, id="not-found"),
        pytest.param(500, {"errors": []}, SlurmUnreachable, id="server-error"),
        pytest.param(502, b"<html>bad gateway</html>", SlurmUnreachable, id="proxy"),
        pytest.param(511, {"errors": []}, SlurmUnauthorized, id="token-refused"),
        pytest.param(200, b"<html>hello</html>", SlurmUnreachable, id="no-json"),
        pytest.param(200, {**NODES, "nodes": [{"name": 7}]}, SlurmUnreachable, id="other-shape"),
        pytest.param(200, {**NODES, **FAULT}, SlurmRefused, id="errors-in-a-good-answer"),
    ],
)
async def test_bad_answer_is_never_a_list(client: SlurmClient, rest: FakeRest, status: int, body: Any, kind: type[SlurmError]) -> None:
    rest.answers["nodes/"] = (status, body)
    with pytest.raises(kind):
        await client.nodes()


@pytest.mark.anyio
async def test_reason_that_is_not_utf8_costs_its_bad_byte_only(client: SlurmClient, rest: FakeRest) -> None:
    """`reason="$(dmesg | tail -1 | cut -c1-60)"` cuts a character in two; slurmrestd hands the byte on (measured on 26.05)."""
    text = json.dumps({**NODES, "nodes": [{**NODE, "reason": "fan *is loud"}]})
    rest.answers["nodes/"] = (200, text.encode().replace(b"*", b"\xc3"))
    found = await client.nodes()
    assert found is not None
    assert [one.reason for one in found.nodes] == ["fan \ufffdis loud"]


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["hang", "cut"])
async def test_no_answer_ends_within_the_deadline(client: SlurmClient, rest: FakeRest, what: str) -> None:
    rest.behave = lambda target: what if "nodes" in target else ""
    with pytest.raises(SlurmUnreachable):
        await asyncio.wait_for(client.nodes(), 5 * patience())


@pytest.mark.anyio
async def test_refused_token_is_not_used_again(client: SlurmClient, rest: FakeRest) -> None:
    await client.nodes()
    rest.answers["nodes/"] = (511, {"errors": []})
    with pytest.raises(SlurmUnauthorized):
        await client.nodes()
    rest.wall += 2  # far from the end of the token's life: only the refusal makes a new one
    rest.answers["nodes/"] = (200, NODES)
    await client.nodes()
    assert len(set(rest.tokens)) == 2
    assert rest.tokens[-1] != rest.tokens[0]


@pytest.mark.anyio
async def test_many_nodes_are_changed_by_one_request(client: SlurmClient, rest: FakeRest) -> None:
    await client.update_nodes(["gpu-1", "gpu-0"], "DRAIN", "slipway: nodeset update")
    posts = [one for one in rest.asked if one[0] == "POST"]
    assert posts == [("POST", "/slurm/v0.0.45/nodes/", {"name": ["gpu-[0-1]"], "state": ["DRAIN"], "reason": "slipway: nodeset update"})]


@pytest.mark.anyio
async def test_refused_change_says_what_slurm_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.answers["nodes/"] = (422, FAULT)
    with pytest.raises(SlurmRefused, match="Invalid node name specified"):
        await client.update_nodes(["x"], "DRAIN", "r")


def refusing(*numbers: int) -> tuple[int, Any]:
    """What slurmrestd says of jobs that it does not requeue."""
    return 422, {"errors": [{"description": f"Requeue JobId={at} failed", "error_number": number} for at, number in enumerate(numbers)]}


@pytest.mark.anyio
@pytest.mark.parametrize("number", [2017, 2020, 2021, 2024], ids=["unknown", "completing", "done", "waiting"])
async def test_job_that_has_left_needs_no_requeue(client: SlurmClient, rest: FakeRest, number: int) -> None:
    rest.answers["jobs/requeue"] = refusing(number)
    await client.requeue_jobs(["7"])


@pytest.mark.anyio
@pytest.mark.parametrize("numbers", [(2037,), (2039,), (2017, 2039), ()], ids=["no-requeue", "no-batch-job", "one-of-two", "no-reason"])
async def test_job_that_slurm_does_not_requeue_is_an_error(client: SlurmClient, rest: FakeRest, numbers: tuple[int, ...]) -> None:
    rest.answers["jobs/requeue"] = refusing(*numbers)
    with pytest.raises(SlurmRefused):
        await client.requeue_jobs(["7", "8"])


@pytest.mark.anyio
async def test_server_that_cannot_requeue_is_said(client: SlurmClient, rest: FakeRest) -> None:
    rest.versions = ("v0.0.44",)
    rest.answers["jobs/requeue"] = (404, b"Unable to find requested URL")
    with pytest.raises(SlurmRefused, match=r"serves v0\.0\.44, which cannot requeue jobs"):
        await client.requeue_jobs(["7"])


@pytest.mark.anyio
async def test_reads_survive_a_slurmrestd_restart_and_writes_are_not_repeated(client: SlurmClient, rest: FakeRest) -> None:
    await client.nodes()
    cuts = 2

    def behave(target: str) -> str:
        nonlocal cuts
        cuts -= 1
        return "cut" if cuts >= 0 else ""

    client._deadline_s = 10 * patience()  # pyright: ignore[reportPrivateUsage]
    rest.behave = behave
    assert await client.nodes() is not None
    cuts = 1
    posts = len([one for one in rest.asked if one[0] == "POST"])
    with pytest.raises(SlurmUnreachable):
        await client.update_nodes(["gpu-0"], "DRAIN", "slipway: a test")
    assert len([one for one in rest.asked if one[0] == "POST"]) == posts + 1


@pytest.mark.anyio
async def test_time_of_each_request_is_measured_also_of_a_bad_answer(client: SlurmClient, rest: FakeRest) -> None:
    def count(request: str) -> float:
        return REGISTRY.get_sample_value("slipway_slurm_request_seconds_count", {"request": request}) or 0

    before = count("get_nodes")
    await client.nodes()
    rest.answers["nodes/"] = (500, {"errors": []})
    with pytest.raises(SlurmUnreachable):
        await client.nodes()
    assert count("get_nodes") == before + 2


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("GET", "/slurm/v0.0.45/nodes/?update_time=100", "get_nodes"),
        ("POST", "/slurm/v0.0.45/jobs/requeue", "post_jobs"),
        ("GET", "/slurm/v0.0.45/ping/", "get_ping"),
        ("GET", "/jobs/", "get_jobs"),
    ],
)
def test_label_of_a_request_has_no_name_and_no_number(method: str, target: str, name: str) -> None:
    assert request_name(method, target) == name
