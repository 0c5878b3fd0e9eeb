"""LDAP silent for five minutes. Quick: tests/slurm/test_ldap.py, where it is asked every second for half a minute."""

from tests.support.slurm.directory_site import Site, be_silent, site, usual

__all__ = ("site", "usual")

SILENCE_S = 300


def test_five_minutes_of_a_silent_server_change_nothing_for_known_users(site: Site) -> None:
    be_silent(site, SILENCE_S)
