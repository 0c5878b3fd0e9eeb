#!/usr/bin/env bash
# Gathers NVIDIA's driver files in /run/nvidia, where jobs inside the shared root find them (images/slurm/root/driver.c). They are the files that
# the container runtime has mounted into this pod one by one: each node has those of its own driver, and none gets into the shared tree.
set -euo pipefail
target=/run/nvidia

library='^lib(cuda|cudadebugger|nvidia-.*|nvcuvid|nvoptix|nvidia_.*|vdpau_nvidia|GLX_nvidia|EGL_nvidia|GLESv[12].*_nvidia)\.so\.'
while read -r path; do
  name=${path##*/}
  if [[ $path == */bin/nvidia-* ]]; then
    folder=$target/bin
  elif [[ $name =~ $library ]]; then
    folder=$target/lib
  else
    continue
  fi
  [[ ! -e $folder/$name ]] || continue
  install -D /dev/null "$folder/$name"
  mount --bind "$path" "$folder/$name"
done < <(awk '$5 ~ "^/usr/" { print $5 }' /proc/self/mountinfo)

[[ -d $target/lib ]] || exit 0
ldconfig -n "$target/lib" # the links that programs ask for, such as libcuda.so.1
ln -sf libcuda.so.1 "$target/lib/libcuda.so"
printf 'worker: %s driver files are in %s\n' "$(find "$target/lib" "$target/bin" -type f 2>/dev/null | wc -l)" "$target" >&2
