"""What a root gets of the machine that it is on, so that packages can be installed in it."""

import tomllib

import pytest

from images.machine import APT, PIP, PROFILE, UV, find_unreachable, render_settings, uv_settings

PROXY = "http://proxy.example.test:3128"


def test_machine_without_settings_leaves_a_root_as_it_is() -> None:
    assert render_settings([], "[global]\n\n", {}, {}) == {}


def test_settings_of_apt_and_pip_and_certificates_have_their_usual_places() -> None:
    found = render_settings(['Acquire::Retries "3";'], "[global]\nindex-url = https://a.test\n", {}, {"own/ca.crt": "PEM"})
    assert found == {
        APT: 'Acquire::Retries "3";\n',
        PIP: "[global]\nindex-url = https://a.test\n",
        UV: uv_settings("[global]\nindex-url = https://a.test\n"),
        "usr/local/share/ca-certificates/own/ca.crt": "PEM",
    }


@pytest.mark.parametrize("key", ["http_proxy", "HTTP_PROXY"])
def test_proxy_is_for_apt_and_for_sessions_and_never_for_the_cluster(key: str) -> None:
    found = render_settings([], "", {key: PROXY, "no_proxy": "own.test"}, {}, ".cluster.local")
    assert found[APT] == f'Acquire::http::Proxy "{PROXY}";\n'
    assert f"export http_proxy='{PROXY}'\nexport HTTP_PROXY='{PROXY}'\n" in found[PROFILE]
    assert "export no_proxy='own.test,.cluster.local'" in found[PROFILE]


def test_proxy_that_apt_has_of_its_own_stays() -> None:
    line = 'Acquire::HTTP::Proxy "http://apt.test:1";'
    assert render_settings([line], "", {"http_proxy": PROXY}, {})[APT] == f"{line}\n"


@pytest.mark.parametrize("address", ["http://localhost:3142", "http://127.0.0.1:3142", "http://[::1]:3142"])
def test_what_only_the_machine_itself_reaches_is_named(address: str) -> None:
    found = render_settings([f'Acquire::http::Proxy "{address}";'], "", {"https_proxy": PROXY}, {})
    assert find_unreachable(found) == [f'Acquire::http::Proxy "{address}";']


def test_uv_uses_pips_indexes_and_trusts_what_the_root_trusts() -> None:
    pip = "[global]\nindex-url = https://a.test/simple\nextra-index-url = https://b.test\n  https://c.test\ntrusted-host = c.test\n"
    assert tomllib.loads(uv_settings(pip)) == {
        "system-certs": True,
        "allow-insecure-host": ["c.test"],
        "index-strategy": "unsafe-best-match",
        "index": [{"url": "https://b.test"}, {"url": "https://c.test"}, {"url": "https://a.test/simple", "default": True}],
    }
    assert uv_settings("[global]\ntimeout = 180\n") == ""
