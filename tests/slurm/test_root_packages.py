"""The Job that installs packages in a version of the shared root, with real apt and an archive of its own."""

from pathlib import Path

from tests.support.slurm.root_jobs import play

ARCHIVE = """
fill one img:1
mkdir -p "$WORK/filler/tmp/archive"
package() {  # name, script that runs at the end of its installation
  local folder=$WORK/package-$1; mkdir -p "$folder/DEBIAN" "$folder/usr/bin"
  printf '%s\\n' "Package: $1" 'Version: 1.0' 'Architecture: all' 'Maintainer: no' 'Description: of the tests' >"$folder/DEBIAN/control"
  printf '#!/bin/sh\\n%s\\n' "$2" >"$folder/DEBIAN/postinst"; printf '#!/bin/sh\\necho %s\\n' "$1" >"$folder/usr/bin/$1"
  chmod 755 "$folder/DEBIAN/postinst" "$folder/usr/bin/$1"
  dpkg-deb --root-owner-group --build "$folder" "$WORK/filler/tmp/archive" >/dev/null
}
index() {
  cd "$WORK/filler/tmp/archive"; : >Packages
  for deb in *.deb; do
    { dpkg-deb --field "$deb"; echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
      echo "SHA256: $(sha256sum "$deb" | cut -d' ' -f1)"; echo; } >>Packages
  done
  cd /
}
rm -rf "$shared"/versions/one/etc/apt/sources.list*
echo 'deb [trusted=yes] file:/tmp/archive ./' >"$shared/versions/one/etc/apt/sources.list"
run() { chroot "$shared/versions/one" "$@"; }
"""


def test_installed_packages_need_no_archive_and_saw_proc_and_dev(image_root: Path, tmp_path: Path) -> None:
    scene = """
        package slipway-a 'test -e /proc/self/exe && echo word >/dev/null && touch /run/of-the-script'
        package slipway-b true; index
        add_packages one slipway-a; run slipway-a
        rm -r "$WORK/filler/tmp/archive"
        add_packages one slipway-a
        find "$shared"/versions/one/{proc,run} -mindepth 1 -not -name lock
        code_of add_packages one slipway-a slipway-b
    """
    printed, said = play(image_root, tmp_path, ARCHIVE + scene)
    assert printed.splitlines() == ["slipway-a", "code 1"]
    assert "version one has slipway-a now" in said
    assert "version one has slipway-a already" in said


def test_package_that_no_archive_has_is_refused_and_nothing_is_installed(image_root: Path, tmp_path: Path) -> None:
    scene = "package slipway-a true; index; code_of add_packages one slipway-a slipway-zz; run slipway-a || echo none"
    printed, said = play(image_root, tmp_path, ARCHIVE + scene)
    assert printed.splitlines() == ["code 3", "none"]
    assert "root-packages: no archive of the version has package slipway-zz. Correct storage.root.packages" in said


def test_install_that_was_killed_goes_on_where_it_ended(image_root: Path, tmp_path: Path) -> None:
    scene = """
        package slipway-a 'touch /tmp/begun; while [ -e /tmp/hold ]; do sleep 0.1; done'; index
        touch "$WORK/filler/tmp/hold"
        kill_when '[[ -e $WORK/filler/tmp/begun ]]' add_packages one slipway-a
        rm "$WORK/filler/tmp/hold"
        run dpkg-query -W -f '${db:Status-Status}\\n' slipway-a
        add_packages one slipway-a; run dpkg-query -W -f '${db:Status-Status}\\n' slipway-a
    """
    printed, _ = play(image_root, tmp_path, ARCHIVE + scene)
    assert printed.splitlines() == ["killed", "half-configured", "installed"]
