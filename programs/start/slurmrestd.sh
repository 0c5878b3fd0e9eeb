#!/usr/bin/env bash
# slurmrestd as its own user, for clients with a JWT. It holds no key: slurmctld and slurmdbd check each token.
set -euo pipefail
as_slurmrestd=()
[[ $(id -u) != 0 ]] || as_slurmrestd=(setpriv --reuid slurmrestd --regid slurmrestd --clear-groups)

export SLURM_CONF=/etc/slurm/slurm.conf
# A container may not unshare; slurmrestd would end at once. Source: slurmrestd(8), SLURMRESTD_SECURITY.
export SLURMRESTD_SECURITY=disable_unshare_files,disable_unshare_sysv
# Makes JWT its own way to authenticate; with munge it would reject every token. Source: Slurm's JWT guide.
export SLURM_JWT=daemon
# Each of its 20 threads keeps the memory of its largest answer, unless they share it. Source: mallopt(3); measured on 26.05.5.
export MALLOC_ARENA_MAX=1
# It never closes idle connections, and serves no more than the limit: by default 124, which one process of a user can hold.
ulimit -Sn "$(ulimit -Hn)"
exec "${as_slurmrestd[@]}" slurmrestd --max-connections 4096 -a rest_auth/jwt -d v0.0.45 0.0.0.0:6820
