"""Two thousand users in a hundred accounts. Quick: tests/slurm/test_accounts.py, with sixty in six."""

import pytest

from tests.support.slurm.accounts_cluster import AccountsCluster, cluster, empty, fill_and_empty

__all__ = ("cluster", "empty")


def test_two_thousand_users_in_a_hundred_accounts(cluster: AccountsCluster, capsys: pytest.CaptureFixture[str]) -> None:
    told = fill_and_empty(cluster, users=2000, accounts=100)
    with capsys.disabled():
        print(f"\n{told}")
