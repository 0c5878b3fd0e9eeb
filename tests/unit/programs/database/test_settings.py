"""The files that MariaDB's clients and slurmdbd read. With real servers: tests/slurm/test_external_database.py."""

import pytest

from programs.database.settings import Database, PasswordError, client_settings, read_database, to_environment, with_password

OWN = Database("dev-mariadb")


def test_variables_that_are_not_there_mean_the_clusters_own_database() -> None:
    assert read_database({"SLIPWAY_MARIADB_HOST": "dev-mariadb", "SLIPWAY_MARIADB_TLS": ""}) == OWN
    assert (OWN.port, OWN.user, OWN.name, OWN.tls) == ("3306", "slurm", "slurm_acct_db", "")


def test_external_database_is_named_whole() -> None:
    env = {"HOST": "db.example", "PORT": "3307", "USER": "slurm-dev", "DATABASE": "acct", "TLS": "/ca.crt"}
    named = read_database({f"SLIPWAY_MARIADB_{key}": value for key, value in env.items()})
    assert named == Database("db.example", "3307", "slurm-dev", "acct", "/ca.crt")


@pytest.mark.parametrize(
    ("database", "variables"),
    [
        pytest.param(OWN, {"HOST"}, id="own"),
        pytest.param(Database("db.example", user="slurm-dev", tls="off"), {"HOST", "USER", "TLS"}, id="some-defaults"),
        pytest.param(
            Database("db.example", "3307", "slurm-dev", "acct", "/ca.crt"), {"HOST", "PORT", "USER", "DATABASE", "TLS"}, id="whole"
        ),
    ],
)
def test_program_reads_the_database_that_it_is_told(database: Database, variables: set[str]) -> None:
    told = to_environment(database)
    assert set(told) == {f"SLIPWAY_MARIADB_{name}" for name in variables}
    assert read_database(told) == database


def test_database_without_a_host_is_none() -> None:
    with pytest.raises(KeyError):
        read_database({"SLIPWAY_MARIADB_PORT": "3306"})


@pytest.mark.parametrize(
    ("password", "line"),
    [
        pytest.param("plain", 'password="plain"', id="plain"),
        pytest.param("a\\b", 'password="a\\\\b"', id="backslash"),
        pytest.param("a#b;c'd e", 'password="a#b;c\'d e"', id="signs-that-a-quote-holds"),
    ],
)
def test_password_is_what_the_client_reads_back(password: str, line: str) -> None:
    assert line in client_settings(OWN, password).splitlines()


@pytest.mark.parametrize(
    ("tls", "lines"),
    [
        pytest.param("", [], id="as-the-client-does"),
        pytest.param("off", ["skip-ssl"], id="off"),
        pytest.param("/ca.crt", ["ssl-ca=/ca.crt", "ssl-verify-server-cert"], id="checked"),
    ],
)
def test_tls(tls: str, lines: list[str]) -> None:
    said = client_settings(Database("db", tls=tls), "x").splitlines()
    assert [line for line in said if "ssl" in line] == lines


@pytest.mark.parametrize(
    ("password", "line"),
    [
        pytest.param("plain", "StoragePass=plain", id="plain"),
        pytest.param("a\\b", "StoragePass=a\\\\b", id="backslash"),
        pytest.param("a#b", "StoragePass=a\\#b", id="sign-of-a-comment"),
        pytest.param("\\#", "StoragePass=\\\\\\#", id="both"),
        pytest.param("päss'", "StoragePass=päss'", id="signs-that-slurm-takes-as-they-are"),
    ],
)
def test_password_of_slurmdbd_is_what_slurm_reads_back(password: str, line: str) -> None:
    assert with_password("DbdHost=dev\n", password) == f"DbdHost=dev\n\n{line}\n"


@pytest.mark.parametrize("sign", ['"', " ", "\t", "\n", "\r", "\x0b", "\x1f", "\x7f"])
def test_password_that_slurm_would_cut_is_refused(sign: str) -> None:
    with pytest.raises(PasswordError, match="choose another"):
        with_password("", f"left{sign}right")
