#!/usr/bin/env bash
# Our programs, and the files of the web page, from /tmp/programs, and all that can be compiled.
set -euo pipefail
target=/opt/slipway
(cd /tmp/programs && find . \( -name '*.py' -o -path '*/page/files/*' \) -exec cp --parents -t "$target" {} +)
ln -s python3 /usr/bin/python
rm -rf "$target/packages/bin"
find "$target/packages" -type d -name tests -prune -exec rm -rf {} +
# botocore has the shapes of all services, 25 MB: the program for EC2 needs EC2, and what gives it credentials.
find "$target/packages/botocore/data" -mindepth 1 -maxdepth 1 -type d \
  ! -name ec2 ! -name sts ! -name sso ! -name sso-oidc ! -name signin -exec rm -rf {} +
chmod -R a+rX "$target"
# The root is read-only when it runs, so what is not compiled now is compiled at every start. By hash: times do not count.
python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "$target"
