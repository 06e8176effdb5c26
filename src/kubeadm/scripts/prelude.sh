# shellcheck shell=sh disable=SC2034,SC2154
# What every script begins with. REFIT_ROOT is for tests: a directory that replaces the host's root.
set -eu
# ssh may send that of the person who runs it: messages and order would be others.
export LC_ALL=C
R=${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
FIELD=binaries
fail() { printf '%s\n' "$*"; exit 1; }
# flag NAME MANIFEST: of a static pod.
flag() { [ ! -e "$2" ] || sed -n "/^ *- --$1=/{s///p;q;}" "$2" 2>/dev/null || true; }
# Never incomplete, nor empty after a power cut; until then under a name with a dot first, which kubelet ignores.
place() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && sync "$new" && mv "$new" "$2"
)
