"""What was changed in a version of the shared root: reported, and carried into the next, with packages that the real dpkg installed."""

import json
from pathlib import Path

from tests.support.slurm.root_jobs import play

PACKAGE = """
# A package with a system user, a folder of that user's, a configuration file, a library, a trigger and an alternative.
make_deb() { # version
  local r=$WORK/deb-$1
  mkdir -p "$r"/{DEBIAN,usr/bin,usr/lib/tool,etc,var/cache/tool}
  printf 'Package: tool\\nVersion: %s\\nArchitecture: all\\nMaintainer: nobody\\nDescription: a tool\\n' "$1" >"$r/DEBIAN/control"
  cat >"$r/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
getent passwd tool >/dev/null || { groupadd --system --gid 870 tool; useradd --system --uid 870 --gid 870 tool; }
chown tool:tool /var/cache/tool
update-alternatives --install /usr/bin/t t /usr/bin/tool 5
POSTINST
  chmod 755 "$r/DEBIAN/postinst"
  echo /etc/tool.conf >"$r/DEBIAN/conffiles"; echo a=1 >"$r/etc/tool.conf"
  echo 'interest /usr/lib/tool' >"$r/DEBIAN/triggers"
  printf '#!/bin/sh\\necho "tool %s"; cat /etc/tool.conf\\n' "$1" >"$r/usr/bin/tool"; chmod 755 "$r/usr/bin/tool"
  cp "$IMAGE"/usr/lib/*-linux-gnu/libz.so.1 "$r/usr/lib/tool/libtool.so.1"
  dpkg-deb --build "$r" "$WORK/tool-$1.deb" >/dev/null
}
inside() { chroot "$shared/versions/$1" "${@:2}"; }
add_deb() { cp "$WORK/tool-$2.deb" "$shared/versions/$1/tmp/"; inside "$1" dpkg -i "/tmp/tool-$2.deb" >/dev/null; }
report_json() { SLIPWAY_REPORT=json report; }
"""


def test_report_names_packages_accounts_and_files_but_no_generated_files(image_root: Path, tmp_path: Path) -> None:
    scene = """
        make_deb 1.2; fill one img:1; switch one; v=$shared/versions/one; report
        add_deb one 1.2
        echo '# mine' >>"$v/etc/bash.bashrc"; chmod 700 "$v/etc/issue.net"; rm "$v/etc/issue"; touch "$v/etc/profile"
        mkdir -p "$v/opt/mine/deep" "$v/usr/lib/__pycache__" "$v/var/log/x"; echo abc >"$v/opt/mine/deep/a"; ln -s a "$v/opt/mine/deep/b"
        printf 1 >"$v/opt/"$'odd\\nname\\xff'; echo log >"$v/var/log/x/y"; echo x >"$v/usr/lib/__pycache__/z.pyc"; echo x >"$v/tmp/t"
        inside one usermod -aG tool nobody; inside one ldconfig
        inside one dpkg --remove --force-depends less >/dev/null 2>&1
        report; report_json >"$WORK/json"
    """
    printed, _ = play(image_root, tmp_path, PACKAGE + scene + 'echo JSON; cat "$WORK/json"')
    text, _, data = printed.partition("JSON\n")
    before, after = text.split("version one (current), filled from img:1\n")[1:]
    assert before.strip() == "nothing was changed"
    lines = [line.strip() for line in after.splitlines()]
    assert lines[:3] == ["packages: 1 installed, 1 removed", "+ tool 1.2", lines[2]]
    assert lines[2].startswith("- less ")
    for line in (
        *("+ user tool", "+ group tool", "+ nobody in group tool", "+ /opt/mine/ (2 files, 4 B)", "+ /opt/odd\\nname\\xff (1 B)"),
        *("+ /etc/alternatives/t -> /usr/bin/tool", "- /etc/issue (34 B)", "~ /etc/issue.net (mode; 27 B)"),
    ):
        assert line in lines
    assert not any(part in after for part in ("pycache", "/tmp/", "/var/log", "profile", "ld.so.cache", "/usr/bin/less"))
    version = json.loads(data)["versions"][0]
    assert version["packages"]["installed"] == [{"name": "tool", "version": "1.2"}]
    assert {"path": "/etc/issue.net", "what": ["mode"], "bytes": 27} in version["files"]["changed"]


def test_carried_package_works_in_the_next_version_and_dpkg_knows_it(image_root: Path, tmp_path: Path) -> None:
    scene = """
        make_deb 1.2; fill one img:1; add_deb one 1.2; echo a=2 >"$shared/versions/one/etc/tool.conf"
        echo mine >"$shared/versions/one/usr/local/bin/mine"
        carry two img:2 one
        inside two /usr/bin/t; inside two dpkg -s tool | sed -n 2p; inside two dpkg -V tool; inside two dpkg --audit; inside two id -nG tool
        stat -c %U:%G:%u "$shared/versions/two/var/cache/tool" | cut -d : -f 3; grep -c tool "$shared/versions/two/etc/shadow"
        grep /usr/lib/tool "$shared/versions/two/var/lib/dpkg/triggers/File"
        inside two dpkg --remove tool >/dev/null; inside two sh -c 'ls /usr/bin/tool 2>/dev/null | wc -l'
    """
    printed, said = play(image_root, tmp_path, PACKAGE + scene)
    wanted = [
        "tool 1.2",
        "a=2",
        "Status: install ok installed",
        "??5?????? c /etc/tool.conf",
        "tool",
        "870",
        "1",
        "/usr/lib/tool tool",
        "0",
    ]
    assert printed.splitlines() == wanted
    assert "carried: 1 packages, 4 files of no package, 1 users, 0 conflicts" in said
    assert "ldconfig: done" in said
    assert "dpkg --audit: nothing to say" in said


def test_what_the_new_image_changed_itself_stays_and_is_told(image_root: Path, tmp_path: Path) -> None:
    scene = """
        make_deb 1.2; make_deb 2.0; fill one img:1; add_deb one 1.2; v=$shared/versions/one
        for f in bash.bashrc issue.net profile; do echo "# mine" >>"$v/etc/$f"; done; rm "$v/etc/issue"
        echo mine >"$v/usr/local/bin/both"; mkdir -p "$v/srv/data"; echo x >"$v/srv/data/x"; echo y >"$v/opt/y"; chown 871 "$v/opt/y"
        n=$WORK/source; echo "# theirs" >>"$n/etc/bash.bashrc"; rm "$n/etc/issue.net"; echo theirs >"$n/usr/local/bin/both"
        rmdir "$n/srv"; ln -s /tmp "$n/srv"; echo 'other:x:871:871::/:/bin/sh' >>"$n/etc/passwd"
        cp "$WORK/tool-2.0.deb" "$n/tmp/"; chroot "$n" dpkg -i /tmp/tool-2.0.deb >/dev/null
        carry two img:2 one; w=$shared/versions/two
        tail -n 1 "$w/etc/bash.bashrc" "$w/etc/profile" | grep '#'; cat "$w/usr/local/bin/both"; readlink "$w/srv"; inside two t | sed -n 1p
        ls -d "$w"/etc/issue* | wc -l; find "$WORK/filler/tmp" "$w/opt" -name '[xy]*' | wc -l; cat "$shared/sources/two.carried"
    """
    printed, _ = play(image_root, tmp_path, PACKAGE + scene)
    lines = printed.splitlines()
    assert lines[:7] == ["# theirs", "# mine", "theirs", "/tmp", "tool 2.0", "1", "0"]
    conflicts = [line.removeprefix("CONFLICT, the new one's stays: ") for line in lines if line.startswith("CONFLICT")]
    assert conflicts == [
        "/etc/bash.bashrc: the new image changed it too",
        "/etc/issue.net: the new image no longer has it",
        "/opt/y: its user 871 is nobody in the old root and other here",
        "/srv/data: /srv is no folder here",
        "/srv/data/x: /srv is no folder here",
        "/usr/local/bin/both: the new image has one of its own",
        "package tool 1.2: version 2.0 is here",
    ]
    assert "removed there, kept here: /etc/issue" in lines


def test_carry_that_was_killed_is_done_again_and_gives_the_same(image_root: Path, tmp_path: Path) -> None:
    scene = """
        make_deb 1.2; fill one img:1; add_deb one 1.2; v=$shared/versions/one
        for n in {1..3000}; do echo "$n" >"$v/opt/$n"; done
        kill_when '[[ -e $shared/filling/two/opt/100 ]]' carry two img:2 one; ls "$shared/versions"
        carry two img:2 one; ls "$shared/versions/two/opt" | wc -l; inside two t | sed -n 1p; head -n 2 "$shared/sources/two.carried"
        carry three img:2 one; diff -r --no-dereference "$shared"/versions/{two,three}/etc && echo same
        cmp "$shared/versions/two/var/lib/dpkg/status" "$shared/versions/three/var/lib/dpkg/status" && echo same
    """
    printed, _ = play(image_root, tmp_path, PACKAGE + scene)
    summary = "1 packages, 3003 files of no package, 1 users, 0 conflicts"
    assert printed.splitlines() == ["killed", "one", "3001", "tool 1.2", "from one", summary, "same", "same"]


def test_version_without_a_manifest_is_reported_and_nothing_is_carried(image_root: Path, tmp_path: Path) -> None:
    scene = """
        fill one img:1; rm "$shared/sources/one.manifest"; fill half img:1; truncate -s 5000 "$shared/sources/half.manifest"; report
        code_of carry two img:2 one; code_of carry two img:2 half; code_of carry two img:2 none; ls "$shared/versions"
        code_of carry one img:1 half
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == [
        "version half, filled from img:1",
        "  its manifest is no use: it is not whole, or not a manifest",
        "version one, filled from img:1",
        "  was filled before Slipway kept manifests: what was changed in it cannot be told",
        *("code 3", "code 3", "code 1", "half", "one", "code 3"),
    ]
    assert "version none is not filled, so there is nothing to carry" in said
    assert "version one is there already, without what was changed in half" in said
    assert "Traceback" not in said


def test_link_in_a_version_leads_the_programs_nowhere(image_root: Path, tmp_path: Path) -> None:
    scene = """
        fill one img:1; v=$shared/versions/one; mkdir "$WORK/filler/secret"; echo of-the-pod >"$WORK/filler/secret/key"
        ln -s /secret "$v/opt/out"; mv "$v/etc/passwd" "$v/etc/passwd.real"; ln -s ../../../../../secret/key "$v/etc/passwd"
        mv "$v/var/lib/dpkg/info" "$v/var/lib/dpkg/kept"; ln -s /secret "$v/var/lib/dpkg/info"
        report; carry two img:2 one
        grep -r of-the-pod "$shared/versions/two/opt" "$shared/versions/two/etc/passwd" "$shared/sources" || echo clean
        readlink "$shared/versions/two/opt/out"
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines()[-2:] == ["clean", "/secret"]
    assert "Traceback" not in said
