"""What the page's server answers, over real HTTP: read only, packed once, bound to itself, and never silent about a silent Slurm."""

import gzip
import json
from pathlib import Path

import httpx2
import pytest

from controllers.nodeset.structs import SLURM_NODES
from controllers.page.settings import read_settings
from controllers.page.site import is_own_name
from controllers.runtime.environment import SettingsError
from tests.support.controllers.page.examples import job_row, node_row, slurm_node
from tests.support.controllers.page.served import serving
from tests.support.fakes.requests import Request, used
from tests.support.patience import patience


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_data_is_packed_and_sent_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        served.put_nodes([node_row("gpu-0")])
        await served.page.read()
        first = await client.get("/data.json")
        assert first.headers["content-encoding"] == "gzip"
        assert first.json()["nodes"][0]["name"] == "gpu-0"
        again = await client.get("/data.json", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["x-now"]
        plain = await client.get("/data.json", headers={"Accept-Encoding": "identity"})
        assert plain.json() == first.json()
        assert gzip.decompress(gzip.compress(plain.content)) == plain.content


@pytest.mark.anyio
async def test_page_names_no_other_host_and_runs_nothing_but_itself(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        page = await client.get("/")
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert [word for word in page.text.split() if "://" in word and "www.w3.org/2000/svg" not in word] == []


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        pytest.param("localhost:8080", True, id="tunnel"),
        pytest.param("LOCALHOST", True, id="capitals"),
        pytest.param("198.18.0.7:8080", True, id="address"),
        pytest.param("[fd00::7]:8080", True, id="address-of-ipv6"),
        pytest.param("::1", True, id="address-without-brackets"),
        pytest.param("dev-page", True, id="service"),
        pytest.param("slurm.example.com.:443", True, id="of-the-stack-file"),
        pytest.param("", True, id="http-1.0"),
        pytest.param("evil.example", False, id="another"),
        pytest.param("dev-page.evil.example:8080", False, id="another-that-begins-alike"),
        pytest.param("localhost.evil.example", False, id="another-that-begins-like-localhost"),
        pytest.param("127.0.0.1.evil.example", False, id="another-that-begins-like-an-address"),
        pytest.param("[evil.example]", False, id="another-in-brackets"),
    ],
)
def test_page_knows_its_names(host: str, is_own: bool) -> None:
    assert is_own_name(host, {"dev-page", "slurm.example.com"}) is is_own


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/", "/data.json", "/jobs.json?user=alice"])
async def test_website_of_another_name_reads_nothing(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        assert (await client.get(path)).status_code == 200
        refused = await client.get(path, headers={"Host": "evil.example:8080"})
        assert (refused.status_code, "page.hosts" in refused.text) == (421, True)


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_changed(tmp_path: Path, method: str) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        assert (await client.request(method, "/data.json")).status_code == 405
        assert (await client.request("HEAD", "/")).content == b""


@pytest.mark.anyio
async def test_silent_slurm_leaves_the_last_reading_with_its_age_and_the_reason(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        served.put_nodes([node_row("gpu-0")])
        served.put_jobs([job_row("7")])
        await served.page.read()
        read = (await client.get("/data.json")).json()["readings"]["nodes"]["at"]
        served.silence()
        served.later_s = 500
        await served.page.read()
        told = (await client.get("/data.json")).json()
        assert [node["name"] for node in told["nodes"]] == ["gpu-0"]
        assert [job["id"] for job in told["queue"]["jobs"]] == ["7"]
        assert told["readings"]["nodes"]["at"] == read
        assert "Unable to contact slurm controller" in told["readings"]["nodes"]["fault"]
        assert len(told["history"]) == 1, "a minute without a reading has no point"


@pytest.mark.anyio
async def test_own_jobs_are_asked_for_by_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url, trust_env=False, timeout=5 * patience()) as client:
        served.put_jobs([job_row("7"), job_row("8", user="bob")])
        await served.page.read()
        assert [job["id"] for job in (await client.get("/jobs.json?user=bob")).json()["jobs"]] == ["8"]
        assert (await client.get("/jobs.json?user=nobody")).json() == {"user": "nobody", "jobs": [], "more": 0}
        assert (await client.get("/jobs.json")).status_code == 400
        assert (await client.get(f"/jobs.json?user={'x' * 200}")).status_code == 400


@pytest.mark.anyio
async def test_day_outlives_a_restart_of_the_container(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        served.put_nodes([node_row("gpu-0", "mixed", 4)])
        await served.page.read()
        kept = json.loads((tmp_path / "history.json").read_text())
        assert kept[0][1:] == [1, 1, 36, 96, 4, 8]


@pytest.mark.anyio
async def test_page_reads_what_its_role_allows_and_no_more(tmp_path: Path) -> None:
    from components.page import rights

    asked: list[Request] = []
    async with serving(tmp_path) as served:
        served.kubernetes.put(SLURM_NODES, slurm_node("gpu-0", "Up"))
        await served.page.node_sets.synced.wait()
        await served.page.slurm_nodes.synced.wait()
        while not {("slurmnodes", "watch"), ("nodesets", "watch")} <= {(one.plural, one.verb) for one in served.kubernetes.requests}:
            await served.page.read()
        asked = served.kubernetes.requests
    assert used(asked) == {(one["group"], one["resource"], verb) for one in rights() for verb in one["verbs"]}


def test_every_fault_of_the_settings_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as found:
        read_settings({"SLIPWAY_PORT": "x", "SLIPWAY_HIDDEN": "jobs,users"})
    for word in ("SLIPWAY_CLUSTER", "SLIPWAY_JWT_KEY", "SLIPWAY_PORT", "users"):
        assert word in str(found.value)
