"""What login pods read: the banner, and limits."""

from configs.render import login
from tests.support.configs.stacks import cluster


def test_login_settings_have_a_line_for_each_limit_that_there_is() -> None:
    edits = {"login.limits": {"cpus": 4, "memoryMiB": 8192}, "login.banner": "Welcome.\n\n  Help: ada@example.com\n\n"}
    assert login.render(cluster("dev", edits)) == {
        "banner": "Welcome.\n\n  Help: ada@example.com\n",
        "limits": "cpus=4\nmemoryMiB=8192\ntasks=2000\n",
        "projects": "/shared/projects/research research\n",
    }
    assert login.render(cluster("dev", {"accounting.accounts": []})) == {"banner": "", "limits": "tasks=2000\n"}
