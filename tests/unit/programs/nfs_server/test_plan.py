"""What the NFS server still has to make."""

import pytest

from programs.nfs_server.plan import Home, missing_folders, missing_homes
from programs.nfs_server.settings import Folder, from_text, to_text


def test_folder_that_is_there_is_left_alone_and_others_get_their_mode() -> None:
    folders = [Folder("shared-root", 0o755), Folder("home", 0o711), Folder("mount-data", 0o1777)]
    assert from_text(to_text(folders)) == folders
    assert missing_folders(folders, {"home", ".ganesha"}) == [folders[0], folders[2]]
    assert from_text(to_text([])) == []


def test_user_with_a_home_keeps_it_and_others_get_one() -> None:
    passwd = "alice:x:10001:10001::/home/alice:/bin/bash\nbob:x:10002:20000::/home/bob:/bin/bash\n"
    assert missing_homes(passwd, {"alice", "eve"}) == [Home("bob", 10002, 20000)]


@pytest.mark.parametrize("line", ["", ":x:1:1", "carol", "carol:x:", "carol:x:10003", "carol:x:10003:", "carol:x:ten:10", "carol:x:-1:10"])
def test_line_that_is_no_user_gets_no_home(line: str) -> None:
    assert missing_homes(f"{line}\nbob:x:10002:10002::/home/bob:/bin/bash", set()) == [Home("bob", 10002, 10002)]
