"""Users from LDAP, for real: Debian's slapd with TLS, the program in the image under runc with the rights that its component asks for, and
logins over ssh with keys of the directory.

What each entry means, and what is left out, is in tests/unit/programs/ldap_sync.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import seconds
from tests.support.slurm.directory_server import BASE, GROUPS, PASSWORD, PEOPLE
from tests.support.slurm.directory_site import ADA, FOLDER, Site, be_silent, site, usual
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import SLURM

FIXTURES = (usual, site)

SILENCE_S = 30


def test_user_of_ldap_logs_in_with_her_key_and_has_her_names_and_home(site: Site) -> None:
    assert site.getent("passwd", "ada") == f"ada:x:{ADA}:{ADA}:Ada:/home/ada:/bin/bash"
    assert site.ssh("ada", "id -u; id -gn; pwd").split() == [str(ADA), "ada", "/home/ada"]
    assert site.ssh("alice") == "alice"


def test_user_who_is_removed_cannot_log_in_within_a_minute(site: Site) -> None:
    site.directory.add_user("bob", 20002, site.public_key)
    wait_for("bob's login", lambda: site.ssh("bob") == "bob")
    site.directory.delete(f"uid=bob,{PEOPLE}")
    wait_for("a refusal", lambda: site.is_refused("bob"), deadline_s=60)
    wait_for("no name", lambda: not site.getent("passwd", "bob"))
    assert not (site.folder / "keys" / "bob").exists()
    assert site.ssh("ada") == "ada"


def test_removal_takes_less_than_a_minute_with_the_default_interval(site: Site) -> None:
    site.directory.add_user("bob", 20002, site.public_key)
    site.start(is_quick=False, refreshS=None)
    assert '"refreshS": 20' in str(site.pod["containers"][0]["command"])
    wait_for("bob's login", lambda: site.ssh("bob") == "bob")
    site.directory.delete(f"uid=bob,{PEOPLE}")
    wait_for("a refusal", lambda: site.is_refused("bob"), deadline_s=60)
    assert site.ssh("ada") == "ada"


def test_key_that_is_taken_away_opens_nothing(site: Site) -> None:
    site.directory.modify(f"uid=ada,{PEOPLE}", "delete: sshPublicKey")
    wait_for("a refusal", lambda: site.is_refused("ada"))
    assert site.getent("passwd", "ada")
    site.directory.modify(f"uid=ada,{PEOPLE}", f"add: sshPublicKey\nsshPublicKey: {site.public_key}")
    wait_for("a login", lambda: site.ssh("ada") == "ada")


def test_groups_of_both_schemas_reach_a_session(site: Site) -> None:
    lab, team, all_of_us = f"cn=lab,{GROUPS}", f"cn=team,{GROUPS}", f"cn=all,{GROUPS}"
    site.directory.add(lab, ["posixGroup"], cn="lab", gidNumber=30001, memberUid=["ada", "stranger", "alice"])
    site.directory.add(team, ["groupOfNames", "bisGroup"], cn="team", gidNumber=30002, member=[f"UID=Ada, OU=People, {BASE}"])
    site.directory.add(all_of_us, ["groupOfNames", "bisGroup"], cn="all", gidNumber=30003, member=[team])
    try:
        wait_for("all groups", lambda: {*site.ssh("ada", "id -Gn").split()} == {"ada", "lab", "team", "all"})
        assert site.getent("group", "lab") == "lab:x:30001:ada,alice"
    finally:
        site.directory.delete(lab, team, all_of_us)


def start_slurm(site: Site) -> None:
    """slurmctld and one worker, idle, unless they run already."""
    if "gpu-0/slurmd" not in site.containers:
        for pod in ("t-slurmctld-0", "gpu-0"):
            site.munged(pod)
        site.slurmctld()
        site.reconfigure()
        site.slurmd("gpu-0")
    idle = "sinfo --noheader --nodes gpu-0 --format %t"
    wait_for("an idle worker", lambda: site.ssh("ada", idle) == "idle", deadline_s=60)


def test_same_names_on_login_worker_and_slurmctld(site: Site) -> None:
    start_slurm(site)
    assert site.ssh("ada", "srun --nodelist gpu-0 bash -c 'id -un; pwd'").split() == ["ada", "/home/ada"]
    controller = site.containers["t-slurmctld-0/reconfigure"]
    assert "ada" in controller.run("getent", "passwd", "ada", user=SLURM)
    job = site.ssh("ada", "sbatch --parsable --nodelist gpu-0 --wrap 'sleep 300'")
    wait_for("a job under her name", lambda: site.ssh("ada", f"squeue --noheader --job {job} --format '%u %T'") == "ada RUNNING")
    site.ssh("ada", f"scancel {job}")


def test_open_session_outlives_its_user_but_her_jobs_do_not_start(site: Site) -> None:
    start_slurm(site)
    site.directory.add_user("bob", 20002, site.public_key)
    wait_for("bob's login", lambda: site.ssh("bob") == "bob")
    site.ssh("bob", "srun --nodelist gpu-0 true")  # so that slurmctld had him, too
    with ThreadPoolExecutor(1) as background:
        script = (
            "touch ~/began; while getent passwd bob; do sleep 0.2; done >/dev/null; sbatch --parsable --nodelist gpu-0 --wrap 'touch ran'"
        )
        session = background.submit(site.ssh, "bob", script)
        wait_for("bob's session", (FOLDER / "volume-home/bob/began").exists)
        site.directory.delete(f"uid=bob,{PEOPLE}")
        job = session.result(seconds(60)).split()[-1]
    state = f"squeue --noheader --job {job} --format '%T %r'"
    wait_for("a job on hold", lambda: "PENDING" in site.ssh("ada", state) and "held" in site.ssh("ada", state).lower())
    assert not (FOLDER / "volume-home/bob/ran").exists()
    # A user whom slurmctld does not know costs no node.
    wait_for("an idle node", lambda: site.ssh("ada", "sinfo --noheader --nodes gpu-0 --format %t") in ("idle", "idle~"))
    site.containers["t-slurmctld-0/reconfigure"].run("scancel", job, user=SLURM, env={"SLURM_CONF": "/etc/slurm/slurm.conf"})


def test_users_cannot_write_who_they_are(site: Site) -> None:
    for attempt in (
        "echo x > /var/lib/extrausers/passwd",
        "echo x > /etc/slipway/keys/ada",
        "echo x > /shared/identity/passwd",
        "mv /shared/identity /shared/mine",
        "rm -r /shared/identity/keys",
        "cat /shared/identity/accepted.json",
    ):
        assert site.ssh("ada", f"if ({attempt}) 2>/dev/null; then echo done; else echo refused; fi") == "refused", attempt


def test_outage_keeps_users_and_the_program_and_ends_by_itself(site: Site) -> None:
    before = (site.folder / "passwd").read_text()
    site.directory.kill()
    wait_for("the sign", lambda: not site.is_ready())
    said = site.wait_said("The last good files stay")
    assert site.directory.uri in said
    assert site.ssh("ada") == "ada"
    site.start()  # also a new program keeps them
    site.wait_said("The last good files stay")
    assert (site.folder / "passwd").read_text() == before
    assert site.ssh("ada") == "ada"
    assert site.program.process.poll() is None
    site.directory.start()
    site.directory.add_user("bob", 20002, site.public_key)
    wait_for("bob's login", lambda: site.ssh("bob") == "bob", deadline_s=60)
    wait_for("the sign", site.is_ready)
    assert site.program.log.count("The last good files stay") == 1
    site.directory.delete(f"uid=bob,{PEOPLE}")


def test_silent_server_changes_nothing_for_known_users_and_recovers_alone(site: Site) -> None:
    """It is asked every second here; tests/soak/test_ldap.py has five minutes."""
    be_silent(site, SILENCE_S)


def test_second_server_answers_for_the_first(site: Site) -> None:
    site.start(uris=["ldaps://198.18.255.1:1", site.directory.uri])
    wait_for("readiness", site.is_ready)
    assert site.people() == ["ada"]


def test_start_tls_is_tls(site: Site) -> None:
    site.start(uris=[site.directory.plain_uri], startTls=True)
    wait_for("readiness", site.is_ready)
    assert site.people() == ["ada"]


@pytest.mark.parametrize(
    ("files", "changes", "words"),
    [
        pytest.param({"ca": "other-ca.crt"}, {}, "certificate", id="authority-that-signed-nothing"),
        pytest.param({"ca": "other-ca.crt"}, {"startTls": True, "uris": ["plain"]}, "certificate", id="the-same-by-start-tls"),
        pytest.param({}, {"caSecret": None}, "certificate", id="no-authority-of-its-own"),
        pytest.param({}, {"uris": ["other-name"]}, "certificate", id="name-that-the-certificate-has-not"),
        pytest.param({"ca": "garbage"}, {}, "ca.crt", id="file-that-is-no-authority"),
        pytest.param({"password": "wrong"}, {}, "login.ldap.bindDn or the password in bindSecret", id="wrong-password"),
        pytest.param({"password": ""}, {}, "the password in login.ldap.bindSecret is empty", id="empty-password"),
        pytest.param({}, {"bindDn": None, "bindSecret": None}, "does not let login.ldap.bindDn look there", id="stranger"),
        pytest.param({}, {"baseDn": "dc=nowhere"}, 'there is no "dc=nowhere"', id="base-that-is-not-there"),
        pytest.param({}, {"userFilter": "(uid=nobody-at-all)"}, "maxRemovedPercent", id="filter-that-finds-nobody"),
    ],
)
def test_wrong_setting_is_refused_and_said_and_users_stay(site: Site, files: dict[str, str], changes: dict[str, Any], words: str) -> None:
    if "ca" in files:
        file = site.directory.folder / files["ca"]
        site.volume("ca", {"ca.crt": file.read_bytes() if file.exists() else b"no certificate\n"})
    if "password" in files:
        site.volume("password", {"password": files["password"]})
    uris = {"plain": site.directory.plain_uri, "other-name": f"ldaps://other.example.test:{site.directory.port}"}
    if "uris" in changes:
        changes = {**changes, "uris": [uris[each] for each in changes["uris"]]}
    try:
        site.start(**changes)
        said = site.wait_said("The last good files stay")
        assert words in said
        assert PASSWORD not in said
        assert not site.is_ready()
        assert site.people() == ["ada"]
        assert site.ssh("ada") == "ada"
    finally:
        site.give_secrets()
    if files:  # a Secret that is mended needs no restart
        wait_for("readiness", site.is_ready)
        assert "LDAP answers again" in site.program.log


def test_emptied_directory_keeps_everyone_until_it_is_accepted(site: Site) -> None:
    site.directory.delete(f"uid=ada,{PEOPLE}")
    try:
        assert "login.ldap.maxRemovedPercent" in site.wait_said("with no user that can be taken")
        assert site.ssh("ada") == "ada"
        site.start(maxRemovedPercent=100)
        wait_for("a refusal", lambda: site.is_refused("ada"))
    finally:
        site.directory.add_user("ada", ADA, site.public_key)


def test_bad_entries_cost_nobody_else(site: Site) -> None:
    site.directory.add_user("root", 0, site.public_key)
    site.directory.add_user("slurm", 20003, site.public_key)
    site.directory.add_user("double", ADA, site.public_key)
    site.directory.add_user("o:x", 20004, site.public_key)
    site.directory.add_user("alice", 20005, site.public_key)
    site.directory.add_user("bob", 20002, f"{site.public_key[:50]}", site.public_key)
    try:
        wait_for("bob's login", lambda: site.ssh("bob") == "bob")
        assert site.people() == ["ada", "bob"]
        said = site.wait_said("login.users of the config")
        for name in ("root", "slurm", "double", "o:x"):
            assert f'user "uid={name},{PEOPLE}" is left out' in said
        site.wait_said("user bob: a key is cut short")
        assert site.is_refused("root")
        assert site.getent("passwd", "slurm").split(":")[2] == "64030"
    finally:
        site.directory.delete(*(f"uid={name},{PEOPLE}" for name in ("root", "slurm", "double", "o:x", "alice", "bob")))


def test_thousands_of_users_come_in_pages_and_a_large_group_is_read(site: Site) -> None:
    names = [f"u{number}" for number in range(1300)]
    site.directory.add_users(names, 40000)
    site.directory.add(f"cn=large,{GROUPS}", ["posixGroup"], cn="large", gidNumber=30001, memberUid=names)
    try:
        wait_for("all users", lambda: len(site.people()) == 1301, deadline_s=60)
        assert site.getent("passwd", "u1299").startswith("u1299:x:41299:41299:")
        wait_for("the large group, whose file is another one", lambda: site.getent("group", "large").count(",") == 1299, deadline_s=60)
    finally:
        site.directory.delete(f"cn=large,{GROUPS}", *(f"uid={name},{PEOPLE}" for name in names))


def test_least_ids_are_those_that_the_pods_can_look_up(site: Site) -> None:
    site.directory.add_user("old", 500, site.public_key, gidNumber=100)
    try:
        site.start(minUid=500, minGid=500)
        wait_for("a login", lambda: site.ssh("old", "id -un; id -gn").split() == ["old", "users"])
    finally:
        site.directory.delete(f"uid=old,{PEOPLE}")


def test_killed_at_any_moment_it_leaves_whole_files(site: Site) -> None:
    names = [f"u{number}" for number in range(300)]
    site.directory.add_users(names, 40000, site.public_key)
    chance = random.Random(1)
    counts: set[int] = set()
    try:
        for number in range(16):
            site.start(maxRemovedPercent=100, userFilter=("(uid=*)", "(uid=ada)")[number % 2])
            before = len([*(site.folder / "keys").iterdir()])
            deadline, end = time.monotonic() + seconds(60), None
            while end is None or time.monotonic() < end:
                assert time.monotonic() < deadline
                if end is None and len([*(site.folder / "keys").iterdir()]) != before:
                    end = time.monotonic() + chance.uniform(0, 0.1)
                time.sleep(0.002)  # else this loop takes a core from the program that it waits for
            os.kill(int((site.program.bundle / "pid").read_text()), signal.SIGKILL)  # at once: runc takes as long as the program
            site.stop()
            keys = [each.read_text() for each in (site.folder / "keys").iterdir()]
            assert {*keys} == {f"{site.public_key}\n"}
            for name, fields in (("passwd", 7), ("group", 4), ("shadow", 9)):
                text = (site.folder / name).read_text()
                assert text.endswith("\n")
                assert {line.count(":") for line in text.splitlines()} == {fields - 1}
                assert text.count("\n") in (2, 302)
            counts.add(len(keys))
        assert any(2 < count < 302 for count in counts), "it was never seen at work, so this proved nothing"
    finally:
        site.directory.delete(*(f"uid={name},{PEOPLE}" for name in names))


def open_to_all(shared: Path) -> None:
    shared.chmod(0o777)


def open_with_the_sticky_bit(shared: Path) -> None:
    shared.chmod(0o1777)


def given_to_a_user(shared: Path) -> None:
    os.chown(shared, ADA, ADA)


def link_in_its_place(shared: Path) -> None:
    (shared / "identity").symlink_to("/tmp")


def folder_of_a_user_in_its_place(shared: Path) -> None:
    (shared / "identity").mkdir()
    os.chown(shared / "identity", ADA, ADA)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(open_to_all, "mode 0777", id="volume-that-is-open-to-all"),
        pytest.param(open_with_the_sticky_bit, "mode 1777", id="also-with-the-sticky-bit"),
        pytest.param(given_to_a_user, f"belongs to uid {ADA}", id="volume-of-a-user"),
        pytest.param(link_in_its_place, "is not a folder", id="link-in-its-place"),
        pytest.param(folder_of_a_user_in_its_place, f"belongs to uid {ADA}", id="folder-of-a-user-in-its-place"),
    ],
)
def test_volume_on_which_users_could_put_their_own_users_is_refused(site: Site, spoil: Callable[[Path], None], words: str) -> None:
    site.stop()
    whole = site.shared.with_name("volume-whole")
    site.shared.rename(whole)
    site.shared.mkdir(mode=0o755)
    try:
        spoil(site.shared)
        code, said = site.prepare_folder()
        assert code == 1
        assert words in said
        assert "Traceback" not in said
    finally:
        shutil.rmtree(site.shared)
        whole.rename(site.shared)
