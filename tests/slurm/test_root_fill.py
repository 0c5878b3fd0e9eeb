"""The programs that fill a version of the shared root and make it current, tried with the image: killed, repeated, on a full volume."""

from pathlib import Path

from tests.support.slurm.root_jobs import play


def test_version_is_whole_at_once_and_filled_only_once(image_root: Path, tmp_path: Path) -> None:
    scene = """
        fill one img:1; stat -c '%a %F' "$shared/versions" "$shared/versions/one" "$shared/versions/one/tmp"; ls "$shared/filling"
        touch "$shared/versions/one/kept"; fill one img:1; ls "$shared/versions/one/kept" | wc -l
        [[ $(find "$WORK/source/usr" | wc -l) == $(find "$shared/versions/one/usr" | wc -l) ]] && echo same
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == ["700 directory", "755 directory", "1777 directory", "1", "same"]
    assert "version one is there already" in said


def test_volume_that_everybody_may_write_to_becomes_roots(image_root: Path, tmp_path: Path) -> None:
    """As provisioners of local disks give it out."""
    scene = """
        chmod 1777 "$shared"; chown 65534:65534 "$shared"
        fill one img:1; stat -c '%a %u:%g' "$shared"
        chmod 2775 "$shared"; fill one img:1; stat -c '%a' "$shared"
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == ["755 0:0", "2775"]
    assert said.count("it is root's now, with mode 755") == 1


def test_fill_that_was_killed_goes_on_where_it_ended(image_root: Path, tmp_path: Path) -> None:
    scene = """
        kill_when '[[ -e $shared/filling/one/usr/bin/bash ]]' fill one img:1
        ls "$shared/versions" | wc -l; ls "$shared/filling"
        fill one img:1; ls "$shared/versions" "$shared/filling"
        cmp "$WORK/source/usr/bin/bash" "$shared/versions/one/usr/bin/bash" && echo same
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines()[:2] == ["killed", "0"]
    assert "same" in printed
    assert "resuming version one, begun earlier" in said
    assert "version one is filled" in said


def test_what_was_begun_of_another_image_is_no_start(image_root: Path, tmp_path: Path) -> None:
    """The file is of the other image: of the same size and time, so rsync would not look at it again."""
    scene = """
        kill_when '[[ -e $shared/filling/one/usr/bin/bash ]]' fill one img:1
        other=$shared/filling/one/etc/debian_version; mkdir -p "${other%/*}"
        tr '[:alnum:]' x <"$IMAGE/etc/debian_version" >"$other"; touch -r "$IMAGE/etc/debian_version" "$other"
        fill one img:2; cmp "$IMAGE/etc/debian_version" "$shared/versions/one/etc/debian_version" && echo same
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == ["killed", "same"]
    assert "what was begun of version one, from img:1, is removed" in said


def test_name_of_a_version_is_for_one_image(image_root: Path, tmp_path: Path) -> None:
    printed, said = play(image_root, tmp_path, "fill one img:1; code=0; fill one img:2 || code=$?; echo $code")
    assert printed == "3"
    assert "filled from img:1, not from img:2" in said


def test_full_volume_fails_the_fill_and_leaves_no_version(image_root: Path, tmp_path: Path) -> None:
    scene = 'fill one img:1 || echo failed; ls "$shared/versions" | wc -l'
    printed, said = play(image_root, tmp_path, scene, size="50m")
    assert printed.splitlines() == ["failed", "0"]
    assert "No space left on device" in said
    assert "the shared volume is full (0 MiB free)" in said


def test_switch_and_rollback_and_a_version_without_a_shell_is_refused(image_root: Path, tmp_path: Path) -> None:
    scene = """
        fill one img:1; fill two img:1
        switch one; current; switch two; current; switch one; current
        rm "$shared/versions/two/usr/bin/sh"
        code=0; switch two || code=$?; echo $code; current
    """
    printed, said = play(image_root, tmp_path, scene)
    assert printed.splitlines() == ["versions/one", "versions/two", "versions/one", "3", "versions/one"]
    assert "REFUSED: no shell runs in version two" in said


def test_version_put_aside_by_a_killed_cleaner_returns_with_its_packages(image_root: Path, tmp_path: Path) -> None:
    scene = """
        fill one img:1; touch "$shared/versions/one/installed"; echo 1 >"$shared/sources/one.unused"
        mv "$shared/versions/one" "$shared/filling/.aside-one"
        fill one img:1; ls "$shared"/versions/one/installed "$shared"/filling "$shared"/sources
    """
    printed, said = play(image_root, tmp_path, scene)
    place = tmp_path / "volume"
    assert printed.split() == [f"{place}/versions/one/installed", f"{place}/filling:", f"{place}/sources:", "one", "one.manifest"]
    assert said.count("version one is filled") == 1


def test_fill_reports_its_wait_for_the_cleaner_and_restarts_if_it_must(image_root: Path, tmp_path: Path) -> None:
    scene = """
        install -d -m 700 "$shared/filling"; exec {held}>"$shared/filling/one.lock"; flock $held
        fill one img:1 2>"$WORK/said" {held}>&- & filler=$!
        until grep -q "waiting for /shared/filling/one.lock" "$WORK/said"; do [[ -d /proc/$filler ]]; done
        ls "$shared/versions"; rm "$shared/filling/one.lock"; exec {held}>&-
        wait $filler; cat "$WORK/said"; ls "$shared/versions"; ls -A "$shared/filling"
    """
    printed, _ = play(image_root, tmp_path, scene)
    assert "version one is filled" in printed
    assert printed.splitlines()[-1] == "one"
