# Scripts for a host begin with this file: it lets them end at the first error, names the folders of the host, and has functions
# that read and place files. Tests set REFIT_ROOT, a directory that replaces the root of the host.

set -eu
# ssh may send the locale of the person who runs it, which would change messages and the order of sorted lines.
export LC_ALL=C
R=${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
fail() { printf '%s\n' "$*"; exit 1; }
# `flag NAME MANIFEST` prints the value of a flag of a static pod; nothing if the flag or the manifest is missing.
flag() { [ ! -e "$2" ] || sed -n "/^ *- --$1=/{s///p;q;}" "$2" 2>/dev/null || true; }
# A copy leaves behind SELinux context, capabilities, ACL and other extended attributes. `preserved FILE` prints what cp of this host
# can give to a file, tried on FILE, which must be our own: BusyBox has no such option, and others know it and refuse it.
preserved() {
  for kinds in mode,ownership,xattr,context mode,ownership,xattr mode,ownership; do
    case $kinds in *context) [ -e /sys/fs/selinux/enforce ] || continue ;; esac
    ! cp --attributes-only --preserve="$kinds" "$1" "$1.try" >/dev/null 2>&1 || { printf '%s\n' "$kinds" && break; }
  done
  rm -f "$1.try"
}
# `attributes OLD NEW` gives NEW, which is our own, the attributes of OLD. It says why, and fails, if one cannot be set.
attributes() {
  kinds=$(preserved "$2")
  [ -n "$kinds" ] || return 0
  why=$(cp --attributes-only --preserve="$kinds" "$1" "$2" 2>&1) && return 0
  printf '%s\n' "$2 cannot get the owner, mode and extended attributes of $1: $why"
  return 1
}
copy_whole() { cp -p "$1" "$2" && attributes "$1" "$2"; }
# `like OLD NEW` gives a new file the mode, owner and extended attributes of the file that it will replace, or ends the step.
like() {
  [ -e "$1" ] || return 0
  attributes "$1" "$2" || { rm -f "$2" && exit 1; }
  # These two attributes sign the content of OLD. A kernel that checks signatures would not run NEW with them.
  for name in security.ima security.evm; do setfattr -x "$name" -- "$2" >/dev/null 2>&1 || true; done
}
# `place NEW FILE` replaces FILE by a copy of NEW. FILE is never incomplete, nor empty after a power cut: the copy is renamed once
# it is on the disk. Until then its name begins with a dot, so the kubelet ignores it.
place() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { [ -e "$2" ] || attributes "$1" "$new"; } && like "$2" "$new" && sync "$new" && mv "$new" "$2"
)
# `place_back BACKUP FILE`: like `place`, but a host without a working file is worse than one without an attribute.
place_back() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { attributes "$1" "$new" || true; } && sync "$new" && mv "$new" "$2"
)
