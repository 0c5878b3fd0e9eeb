#!/bin/bash
# Makes an image without Docker: a folder with all that the program needs, packed as a squashfs file. An image of a registry needs no such
# step: --container-image=docker://HOST/NAME:TAG.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/bin"
gcc -O2 -static words.c -o "$folder/bin/words"
mksquashfs "$folder" words.sqsh -noappend -quiet -no-progress
