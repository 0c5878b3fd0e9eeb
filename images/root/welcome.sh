# For a login at a terminal, after the state of the cluster: where to read on.
if [ -n "${SSH_TTY-}" ] && [ -z "${TMUX-}${STY-}" ] && [ ! -e ~/.hushlogin ]; then
  echo "Guides: man slipway, or the files in /usr/share/doc/slipway. What this cluster has: slipway-info."
fi
