"""The programs that fill a version of the shared root and make it current, as their Jobs run them, in namespaces of their own."""

import subprocess
from pathlib import Path

from tests.support.log_lines import as_words

PROJECT = Path(__file__).parents[3]
_NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SETUP = """
set -euo pipefail
mount -t tmpfs tmpfs "$WORK"
mkdir "$WORK"/{source,filler,volume}
for each in source filler; do
  mkdir "$WORK/layers-$each" "$WORK/work-$each"
  mount -t overlay overlay -o "lowerdir=$IMAGE,upperdir=$WORK/layers-$each,workdir=$WORK/work-$each" "$WORK/$each"
  mount -t proc proc "$WORK/$each/proc"
done
mount -t tmpfs -o "size=$SIZE,mode=755" tmpfs "$WORK/volume"
mkdir -p "$WORK/filler/shared" "$WORK/filler/scripts"
mount --bind "$WORK/volume" "$WORK/filler/shared"
mount --rbind /dev "$WORK/filler/dev"
cp "$PROJECT/programs/start/root-switch.sh" "$WORK/filler/scripts"
mkdir -p "$WORK/filler/opt/slipway/programs"
cp -r "$PROJECT/names" "$PROJECT/slurm" "$WORK/filler/opt/slipway"
cp -r "$PROJECT"/programs/root_{fill,changes,packages} "$WORK/filler/opt/slipway/programs"
chroot "$WORK/source" /usr/lib/slipway/hold &
shared=$WORK/volume
program() { chroot "$WORK/filler" bash -c 'cd /opt/slipway && exec python3 -EsSB -m "$@"' program "$@"; }
fill() { SLIPWAY_ROOT_VERSION=$1 SLIPWAY_ROOT_IMAGE=$2 program programs.root_fill.run >&2; }
fill_tar() { SLIPWAY_ROOT_VERSION=$1 SLIPWAY_ROOT_TAR=$2 SLIPWAY_ROOT_SHA256=$3 program programs.root_fill.run >&2; }
carry() { SLIPWAY_ROOT_CARRY_FROM=$3 fill "$1" "$2" "${@:4}"; }
# Begins a fill, kills it with all that it started once a condition holds, and says so. The fill leaves the processor to who watches it.
kill_when() {
  local condition=$1; shift
  set -m; { renice -n 19 "$BASHPID" >/dev/null; "$@"; } & local pid=$!; set +m
  until eval "$condition"; do [[ -d /proc/$pid ]] || { echo "it ended before it could be killed"; exit 1; }; done
  kill -KILL -- "-$pid"; wait "$pid" 2>/dev/null || echo killed
}
# With these TAR_OPTIONS, GNU tar stops 1 MiB into the archive and leaves $shared/held. They hold no quotes: GNU tar crashes on them.
HOLD_TAR="--checkpoint=100 --checkpoint-action=exec=hold-tar"
printf '#!/bin/sh\ntouch /shared/held; exec sleep infinity\n' >"$WORK/filler/usr/bin/hold-tar"; chmod 755 "$WORK/filler/usr/bin/hold-tar"
add_packages() { SLIPWAY_ROOT_VERSION=$1 SLIPWAY_ROOT_PACKAGES="${*:2}" program programs.root_packages.run >&2; }
report() { program programs.root_changes.run report; }
code_of() { local code=0; "$@" || code=$?; echo "code $code"; }
switch() { SLIPWAY_ROOT_VERSION=$1 chroot "$WORK/filler" bash /scripts/root-switch.sh; }
current() { readlink "$shared/current"; }
"""
"""A pod's two containers: the one that is copied, and the one that copies."""


def play(image_root: Path, work: Path, scene: str, size: str = "2g", timeout_s: float = 900, **variables: str) -> tuple[str, str]:
    """What a scene printed, and what the scripts said. The image's files are on a file system of their own each time."""
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "IMAGE": str(image_root),
        "WORK": str(work),
        "SIZE": size,
        "PROJECT": str(PROJECT),
        **variables,
    }
    done = subprocess.run(
        [*_NAMESPACE, "bash", "-c", _SETUP + scene], env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip(), as_words(done.stderr)
