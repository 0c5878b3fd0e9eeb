#!/usr/bin/env bash
# Locales under the names that ssh clients send.
set -euo pipefail
# An ssh client sends its own locale, which a job takes along. Each language has the data of C.UTF-8 under its name: glibc takes it for
# de_DE.UTF-8, and for regions that no list has, such as en_DE. The real ones are 240 MB (locales-all); once installed, they come first. `UTF-8`
# is what macOS sends.
(
  cd /tmp
  apt-get download -qq locales
  dpkg-deb --fsys-tarfile locales_*.deb | tar -x -O ./usr/share/i18n/SUPPORTED |
    sed -n 's/^\([a-z]*\)[_ .@].*/\1/p' | sort -u >languages
  (($(wc -l <languages) > 100)) || { echo "setup: the list of languages in Debian's package locales has another form than it had" >&2; exit 3; }
  for language in $(<languages) UTF-8; do ln -s C.utf8 "/usr/lib/locale/$language"; done
  rm locales_*.deb languages
)
