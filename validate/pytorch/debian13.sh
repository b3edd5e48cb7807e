#!/bin/sh
# Runs a command with Debian 13's Python and PyTorch 2.6, as root:
#   validate/pytorch/debian13.sh COMMAND...   debian13.sh --remove   debian13.sh --size
# On Debian 13 the command runs as it is. Elsewhere it runs in a root of its own, ~/.cache/foretrain/debian-13 (3 GB),
# which debootstrap makes once, in some five minutes; --remove deletes it. The project lies there under the same path;
# what is mounted for a command goes with it.
set -eu
root=${XDG_CACHE_HOME:-$HOME/.cache}/foretrain/debian-13
project=$(cd "$(dirname "$0")/../.." && pwd)
case ${1:---help} in
--remove) exec rm -rf --one-file-system "$root" ;;
--size) exec du -sh "$root" ;;
--help) exec sed -n '2,6s/^# //p' "$0" ;;
esac
case $(cat /etc/debian_version 2>/dev/null) in 13* | trixie*) exec "$@" ;; esac
[ "$(id -u)" = 0 ] || { echo "$0: only root may make and enter a root of Debian 13" >&2; exit 2; }
if [ ! -e "$root/.complete" ]; then
  command -v debootstrap >/dev/null || { echo "$0: there is no \`debootstrap\`: apt-get install debootstrap" >&2; exit 2; }
  mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
    sed -nE 's/^(URIs:|deb) +(https?:[^ ]+).*/\2/p' | grep -v security | head -1)
  rm -rf --one-file-system "$root"
  mkdir -p "$(dirname "$root")"
  debootstrap --variant=minbase --include=python3-torch,libopenblas0-pthread,iproute2,procps trixie "$root" "${mirror:-http://deb.debian.org/debian}" >&2
  touch "$root/.complete"
fi
mkdir -p "$root$project" "$root/sys"
exec unshare --mount --propagation private sh -c '
  root=$1 project=$2
  shift 2
  mount --bind "$root" "$root"
  for folder in /proc /sys /dev /tmp "$project"; do mount --rbind "$folder" "$root$folder"; done
  exec chroot "$root" sh -c "cd \"\$1\" && shift && exec \"\$@\"" sh "$project" "$@"' sh "$root" "$project" "$@"
