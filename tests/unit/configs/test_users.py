"""Users as the files of libnss-extrausers: formats, own and shared groups, keys."""

from configs.render import users
from tests.support.configs.stacks import KEY, cluster

BOB = {"name": "bob", "uid": 10002, "gid": 20001, "groups": ["research"], "shell": "/bin/zsh", "sshKeys": [KEY]}
ALICE = {"name": "alice", "uid": 10001, "sshKeys": [KEY]}
EDITS = {"login.groups": [{"name": "research", "gid": 20001}, {"name": "empty", "gid": 20002}], "login.users": [ALICE, BOB]}


def test_passwd_has_a_line_for_each_user() -> None:
    assert users.render(cluster("dev", EDITS))["passwd"] == (
        "alice:x:10001:10001::/home/alice:/bin/bash\nbob:x:10002:20001::/home/bob:/bin/zsh\n"
    )


def test_group_has_own_groups_only_where_no_declared_one_has_the_gid() -> None:
    assert users.render(cluster("dev", EDITS))["group"] == "alice:x:10001:\nresearch:x:20001:bob\nempty:x:20002:\n"


def test_shadow_has_no_password_and_no_lock() -> None:
    assert users.render(cluster("dev", EDITS))["shadow"] == "alice:*:19000:0:99999:7:::\nbob:*:19000:0:99999:7:::\n"


def test_keys_are_one_file_a_user_and_one_line_a_key() -> None:
    assert users.render_keys(cluster("dev", EDITS)) == {"alice": f"{KEY}\n", "bob": f"{KEY}\n"}


def test_without_users_the_files_are_empty() -> None:
    nobody = cluster("dev", {"login.users": [], "login.groups": [], "accounting.accounts": []})
    assert users.render(nobody) == {"passwd": "", "group": "", "shadow": ""}
