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
# What a copy leaves behind: SELinux context, capabilities, ACL and other extended attributes. BusyBox cannot copy them.
EXTENDED=
! cp --attributes-only --help >/dev/null 2>&1 || EXTENDED=xattr
[ -z "$EXTENDED" ] || [ ! -e /sys/fs/selinux/enforce ] || EXTENDED=xattr,context
copy_whole() { cp -p ${EXTENDED:+"--preserve=$EXTENDED"} "$1" "$2"; }
# `like OLD NEW` gives a new file mode, owner and extended attributes of the one that it is about to replace, or ends the step.
like() {
  [ -n "$EXTENDED" ] && [ -e "$1" ] || return 0
  why=$(cp --attributes-only --preserve="mode,ownership,$EXTENDED" "$1" "$2" 2>&1) && return 0
  rm -f "$2"
  fail "$2 cannot get the owner, mode and extended attributes of $1: $why"
}
# Never incomplete, nor empty after a power cut; until then under a name with a dot first, which kubelet ignores.
place() (
  new=${2%/*}/.${2##*/}.refit
  copy_whole "$1" "$new" && like "$2" "$new" && sync "$new" && mv "$new" "$2"
)
