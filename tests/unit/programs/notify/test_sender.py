"""A webhook that takes messages, refuses them, wants to be left alone, hangs or is away: nothing is lost without a line in the log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from programs.mail.plan import LIFE_S
from programs.mail.spool import Spool, Waiting
from programs.notify import post as posting
from programs.notify.post import Outcome, post
from programs.notify.sender import Sender, Senders
from programs.notify.state import PAYLOAD, spool_of
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.webhook_service import Service, read_posts, start
from tests.unit.programs.notify.examples import NOW

MESSAGES = ('{"text": "first"}', '{"text": "second"}')


def no(*_: object) -> bool:
    return False


class Site:
    """A webhook called chat, with two messages that wait for it."""

    def __init__(self, folder: Path) -> None:
        (folder / "inbox").mkdir()
        self.service: Service = start(folder / "inbox")
        self.address = f"http://127.0.0.1:{self.service.server_port}/services/secret"
        self.folder, self.urls = folder / "spools", folder / "urls"
        (self.urls / "chat").mkdir(parents=True)
        self.url = self.urls / "chat" / "url"
        self.url.write_text(f"{self.address}\n")
        self.said: list[str] = []
        self.spool = spool_of("chat", self.folder)
        for body in MESSAGES:
            self.spool.add(Waiting(NOW, body, "chat", {PAYLOAD: body}))
        self.sender = Sender("chat", self.said.append, self.folder, self.urls)

    def answer(self, words: str) -> None:
        (self.service.folder / "answer").write_text(words)

    def recover(self) -> None:
        (self.service.folder / "answer").unlink()

    def texts(self) -> list[str]:
        return [each["text"] for each in read_posts(self.service.folder)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.service.shutdown()
    made.service.server_close()


def test_messages_arrive_in_their_order_and_go(site: Site) -> None:
    waits = [site.sender.round(NOW) for _ in range(3)]
    assert (site.texts(), site.spool.names()) == (["first", "second"], [])
    assert waits == [1.0, 1.0, 1.0]  # Slack takes one a second


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param("500", "it answers with 500: invalid_payload", id="broken"),
        pytest.param("404", "it answers with 404", id="no-such-webhook"),
        pytest.param("302 http://127.0.0.1:1/elsewhere", "it answers with 302", id="redirect"),
    ],
)
def test_webhook_that_fails_is_asked_again_less_and_less_often(site: Site, answer: str, why: str) -> None:
    site.answer(answer)
    assert [site.sender.round(NOW) for _ in range(3)] == [5, 10, 20]
    assert why in site.said[0]
    assert "2 wait; the next try is in 5 s" in site.said[0]
    site.recover()
    assert site.sender.round(NOW) == 1
    assert (site.texts(), site.said[-2:]) == (["first"], ["chat takes messages again", f"told chat: {MESSAGES[0]}"])


@pytest.mark.parametrize(("answer", "wait_s"), [("429 37", 37), ("429 999999", 3600), ("429 soon", 5), ("429 0", 1)])
def test_webhook_is_left_alone_for_as_long_as_it_wants(site: Site, answer: str, wait_s: float) -> None:
    site.answer(answer)
    assert site.sender.round(NOW) == wait_s
    assert len(site.spool.names()) == 2


def test_message_that_is_refused_holds_up_no_other(site: Site) -> None:
    site.answer("400")
    site.sender.round(NOW)
    site.recover()
    site.sender.round(NOW)
    assert site.texts() == ["second"]
    assert site.said[0].startswith(f"NOT SENT to chat: {MESSAGES[0]}: it answers with 400")


def test_webhook_that_hangs_is_given_up_for_now(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "_ANSWER_S", 0.3)
    site.answer("hang")
    assert site.sender.round(NOW) == 5
    assert "TimeoutError" in site.said[0]
    site.recover()


def test_log_has_no_address(site: Site) -> None:
    site.service.shutdown()
    site.service.server_close()
    site.sender.round(NOW)
    site.url.write_text("https://127.0.0.1:1/services/secret")
    site.sender.round(NOW)
    site.url.write_text("file:///etc/services/secret")
    site.sender.round(NOW)
    site.url.unlink()
    site.sender.round(NOW)
    assert "Connection refused" in site.said[0]
    assert "no http:// or https:// address" in site.said[2]
    assert "its Secret has no key url" in site.said[3]
    assert not [line for line in site.said if "secret" in line or "127.0.0.1" in line]


def test_message_that_waited_too_long_is_given_up(site: Site) -> None:
    site.sender.round(NOW + LIFE_S + 1)
    assert "has not taken it for 72 hours" in site.said[0]
    assert len(site.spool.names()) == 1


def test_file_that_is_no_message_is_given_up(site: Site) -> None:
    (site.folder / "chat" / "0.json").write_text("x")
    site.sender.round(NOW)
    assert "cannot be read" in site.said[0]
    assert len(site.spool.names()) == 2


def test_body_is_bytes_of_utf8(site: Site) -> None:
    assert post(site.address, '{"text": "µ"}') == Outcome(is_taken=True)
    assert site.texts() == ["µ"]


def test_webhook_that_the_config_does_not_name_any_more_gets_nothing(site: Site) -> None:
    Senders(site.said.append, site.folder, site.urls).follow([])
    assert site.said == ["NOT SENT to chat: 2 messages: the config does not name it any more"]
    assert site.sender.round(NOW) == 1
    assert site.service.asked == 0


def test_each_webhook_has_a_thread_that_sends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("programs.notify.sender._BETWEEN_S", 0.01)
    monkeypatch.setattr("programs.notify.sender.is_too_old", no)
    senders = Senders(site.said.append, site.folder, site.urls)
    senders.follow(["chat"])
    wait_for("both", lambda: site.texts() == ["first", "second"])
    senders.follow([])


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(b"https://[abc/x", id="no-host"),
        pytest.param("https://a\u2100b/x".encode(), id="host-of-other-letters"),
        pytest.param(b"http://chat.example/hooks?token=s3cret a", id="space"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b"http://chat.example:port/x", id="no-port"),
    ],
)
def test_secret_that_is_no_address_ends_nothing_and_is_not_in_the_log(site: Site, secret: bytes) -> None:
    site.url.write_bytes(secret)
    assert site.sender.round(NOW) > 0
    assert len(site.spool.names()) == 2
    assert "takes no message" in site.said[-1]
    assert "s3cret" not in site.said[-1]


def test_message_that_cannot_be_removed_is_sent_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is read-only after an error of its own."""

    def fail(_spool: object, _name: str) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as disk:
        disk.setattr(Spool, "remove", fail)
        for _ in range(3):
            site.sender.round(NOW)
    assert len(site.texts()) == 1
    assert "Read-only file system" in site.said[-1]
    for _ in range(3):
        site.sender.round(NOW)
    assert site.texts() == ["first", "second"]


def test_half_a_message_of_a_full_disk_takes_no_room(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path, _text: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match="No space"):
            site.spool.add(Waiting(NOW, "third", "chat", {}))
    assert {file.suffix for file in (site.folder / "chat").iterdir()} == {".json"}
