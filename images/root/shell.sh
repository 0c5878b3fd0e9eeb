# What every shell of a user has, whichever way it was started: login, `ssh HOST COMMAND`, batch script, zsh. Starts no program.
case ":$PATH:" in
  *":${HOME:-/}/.local/bin:"*) ;;
  *) [ "${HOME:-/}" = / ] || export PATH="$HOME/.local/bin:$PATH" ;;
esac
# screen's own folder is below /run, which a session has empty.
[ -n "${SCREENDIR-}" ] || export SCREENDIR="/tmp/.screen-${USER:-${LOGNAME:-$HOME}}"
# Lmod takes a quarter of a second to start: a shell that never calls `module` does not wait for it.
if ! command -v module >/dev/null 2>&1; then
  module() { unset -f module ml; . /etc/profile.d/lmod.sh; module "$@"; }
  ml() { unset -f module ml; . /etc/profile.d/lmod.sh; ml "$@"; }
fi
[ -n "${BASH_ENV-}" ] || export BASH_ENV=/etc/profile.d/slipway.sh
