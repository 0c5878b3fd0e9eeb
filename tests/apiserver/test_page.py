"""The web page in a real headless Chromium: what people see of it, on loopback, with Slurm and Kubernetes played by the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.nodeset.structs import SLURM_NODES
from tests.support.browser import Browser, Page, install
from tests.support.controllers.page.examples import cluster, job_row, node_row, slurm_node
from tests.support.controllers.page.served import Served, example, in_thread

SHOWN = "document.body.dataset.shown"
ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    install()
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as found:
        yield found


def test_1000_nodes_are_cells_in_the_colour_of_their_state(browser: Browser, tmp_path: Path) -> None:
    rows, _ = cluster(1000)
    with example(tmp_path, 1000) as served:
        page = browser.open(served.url)
        page.until(SHOWN)
        assert page.value("document.querySelectorAll('#sets button').length") == 1000
        drained = sum(row["StateComplete"] == "idle+cloud+drain" for row in rows)
        assert page.value("document.querySelectorAll('#sets button.drained').length") == drained > 5
        colours = "[...new Set([...document.querySelectorAll('#sets button')].map((one) => getComputedStyle(one).backgroundColor))].length"
        assert page.value(colours) >= 5
        assert page.value("document.querySelector('#legend').innerText").split().count("drained") == 1
        assert page.value("document.querySelector('#day svg').getAttribute('aria-label')").startswith("Share in use over the last day")
        assert page.messages == []
        assert_fits(page)


def assert_fits(page: Page) -> None:
    """No sideways scroll on a desk or a phone."""
    for width in (1280, 390):
        page.size(width, 844)
        page.until(f"innerWidth === {width}")
        assert page.value("document.documentElement.scrollWidth") <= width


def test_causes_are_shown_by_mouse_and_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with example(tmp_path, 100) as served:
        page = browser.open(served.url)
        page.until(SHOWN)
        at = page.value(
            "(() => { const at = document.querySelector('[data-node=gpu-1]').getBoundingClientRect(); return [at.x + 5, at.y + 5]; })()"
        )
        page.move(*at)
        told = page.until("!document.getElementById('tip').hidden && document.getElementById('tip').innerText")
        for words in ("gpu-1", "drained", "check/gpu", "12 uncorrectable errors in memory", "administrator", "cabling in rack 12"):
            assert words in told
        page.move(3, 3)
        page.until("document.getElementById('tip').hidden")
        page.value("document.querySelector('[data-set=gpu] button').focus()")
        page.press("ArrowRight")
        assert page.value("document.activeElement.dataset.node") == "gpu-1"
        assert "check/gpu" in page.until("!document.getElementById('tip').hidden && document.getElementById('tip').innerText")
        assert page.value("document.activeElement.getAttribute('aria-label')").startswith("gpu-1, drained; check/gpu: ")
        page.press("Escape")
        page.until("document.getElementById('tip').hidden")


def test_users_texts_are_text_and_never_markup(browser: Browser, tmp_path: Path) -> None:
    with in_thread(tmp_path) as served:
        attacked = slurm_node("gpu-0", "Drained", (0,))
        attacked["status"]["causes"][0]["evidence"] = ATTACK
        served.put_nodes([node_row("gpu-0", "idle+drain", reason=ATTACK)], [attacked])
        served.put_jobs([job_row("7", Name=ATTACK[:80], user="<b>alice</b>", Partition="<i>main</i>")])
        served.when_told(lambda each: len(each.slurm_nodes.store) == 1)
        served.read()
        page = browser.open(f"{served.url}?user=%3Cscript%3Edocument.title%3D1%3C/script%3E")
        page.until(SHOWN)
        page.until("document.getElementById('jobs-note').innerText.includes('has no job')")
        page.value("document.querySelector('#sets button').focus()")
        page.until("!document.getElementById('tip').hidden")
        assert page.value("document.querySelectorAll('main img, main script, main b b, #tip img, td i').length") == 0
        assert page.value("document.title") == "dev: Slurm"
        assert "onerror" in page.value("document.getElementById('away-rows').innerText")
        assert page.messages == []


def test_own_jobs_are_chosen_by_name_and_kept_in_the_address(browser: Browser, tmp_path: Path) -> None:
    with in_thread(tmp_path) as served:
        served.put_nodes([node_row("gpu-0")])
        served.put_jobs([*(job_row(str(at), user="bob") for at in range(300)), job_row("9999", "PENDING", user="alice", Reason="Priority")])
        served.read()
        page = browser.open(served.url)
        page.until(SHOWN)
        page.value(
            "(() => { const box = document.getElementById('user'); box.value = 'alice'; box.dispatchEvent(new Event('change')); })()"
        )
        page.until("document.getElementById('job-rows').children.length === 1")
        assert page.value("document.getElementById('job-rows').innerText").split()[0] == "9999"
        address = page.value("location.href")
        assert address.endswith("?user=alice")
        again = browser.open(address)
        again.until("document.getElementById('job-rows').children.length === 1")


def test_silent_slurm_is_said_at_the_top_and_nothing_vanishes(browser: Browser, tmp_path: Path) -> None:
    with example(tmp_path, 4) as served:
        page = browser.open(served.url)
        page.until(SHOWN)
        assert page.value("document.getElementById('banner').hidden") is True
        fall_silent(served)
        told = page.until("!document.getElementById('banner').hidden && document.getElementById('banner').innerText")
        assert "Slurm has not told its nodes for" in told
        assert "Unable to contact slurm controller" in told
        assert page.value("document.querySelectorAll('#sets button').length") == 4


def fall_silent(served: Served) -> None:
    served.silence()
    served.later_s = 42
    served.read()


def test_page_that_never_heard_slurm_shows_what_the_controller_knows(browser: Browser, tmp_path: Path) -> None:
    with in_thread(tmp_path) as served:
        served.silence()
        served.put(SLURM_NODES, slurm_node("gpu-0", "Drained", (0,)))
        served.when_told(lambda each: len(each.slurm_nodes.store) == 1 and each.node_sets.synced.is_set())
        served.read()
        page = browser.open(served.url)
        page.until(SHOWN)
        assert "Slurm has not told its nodes yet" in page.until("document.getElementById('banner').innerText")
        assert page.value("document.querySelector('#sets button').className") == "cell drained"


def test_hidden_jobs_are_not_in_the_page(browser: Browser, tmp_path: Path) -> None:
    with in_thread(tmp_path, hidden=frozenset({"jobs"})) as served:
        served.put_nodes([node_row("gpu-0")])
        served.put_jobs([job_row("7", user="alice")])
        served.read()
        page = browser.open(f"{served.url}?user=alice")
        page.until(SHOWN)
        assert "PrivateData" in page.until("document.getElementById('jobs-note').innerText")
        assert page.value("document.getElementById('jobs').hidden") is True
