# All scripts for a host begin with this file. It makes them end at the first error, defines the folders of the host,
# and has functions that read and replace files. Tests set REFIT_ROOT to a directory that replaces the root of the host.

set -eu
# ssh may pass on the locale of the person who runs it. That locale would change messages and the order of sorted lines.
export LC_ALL=C
R=${REFIT_ROOT:-}
D=$R/var/lib/refit
MANIFESTS=$R/etc/kubernetes/manifests
BACKUPS=$R/etc/kubernetes/tmp
fail() { printf '%s\n' "$*"; exit 1; }
# `flag NAME MANIFEST` prints the value of a flag of a static pod; nothing if the flag or the manifest is missing.
flag() { [ ! -e "$2" ] || sed -n "/^ *- --$1=/{s///p;q;}" "$2" 2>/dev/null || true; }
# A copy of a file does not have its SELinux context, capabilities, ACL and other extended attributes. `preserved FILE`
# prints the kinds of attributes that cp can set on this host. It tests this with FILE, which must be a file of Refit.
# The test is needed because cp of BusyBox does not have the option, and other versions of cp have the option but may
# fail.
preserved() {
  for kinds in mode,ownership,xattr,context mode,ownership,xattr mode,ownership; do
    case $kinds in *context) [ -e /sys/fs/selinux/enforce ] || continue ;; esac
    ! cp --attributes-only --preserve="$kinds" "$1" "$1.try" >/dev/null 2>&1 || { printf '%s\n' "$kinds" && break; }
  done
  rm -f "$1.try"
}
# `attributes OLD NEW` sets the attributes of OLD on NEW, which must be a file of Refit. If an attribute cannot be set,
# it prints the reason and fails.
attributes() {
  kinds=$(preserved "$2")
  [ -n "$kinds" ] || return 0
  why=$(cp --attributes-only --preserve="$kinds" "$1" "$2" 2>&1) && return 0
  printf '%s\n' "$2 cannot get the owner, mode and extended attributes of $1: $why"
  return 1
}
copy_whole() { cp -p "$1" "$2" && attributes "$1" "$2"; }
# `like OLD NEW` gives NEW the mode, owner and extended attributes of OLD, which NEW will replace. If that fails, it
# ends the step.
like() {
  [ -e "$1" ] || return 0
  attributes "$1" "$2" || { rm -f "$2" && exit 1; }
  # These two attributes contain signatures of the content of OLD. With these attributes, a kernel that checks
  # signatures would not run NEW.
  for name in security.ima security.evm; do setfattr -x "$name" -- "$2" >/dev/null 2>&1 || true; done
}
# `place NEW FILE` replaces FILE with a copy of NEW. FILE is never incomplete, and it is not empty after a power cut,
# because the copy is renamed only after it is written to the disk. Until then the name of the copy begins with a dot,
# so the kubelet ignores it.
place() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { [ -e "$2" ] || attributes "$1" "$new"; } && like "$2" "$new" && sync "$new" && mv "$new" "$2"
)
# `place_back BACKUP FILE` works like `place`, but ignores attributes that cannot be set. A host without a working file
# is worse than a host whose file lacks an attribute.
place_back() (
  new=${2%/*}/.${2##*/}.refit
  cp -p "$1" "$new" && { attributes "$1" "$new" || true; } && sync "$new" && mv "$new" "$2"
)
