# `untrusted PATH` prints which users other than root could change PATH, or a folder or link that leads to PATH. It
# prints nothing if there are no such users, or if PATH is missing. The rules are the same as in
# src/agent/state/trusted-path.ts, for hosts that have only a shell.
# uses: parts/prelude.sh

untrusted() (
  set -f
  rest=$1 at='' links=0
  case $1 in /*) ;; *) rest=$PWD/$1 ;; esac
  while [ -n "$rest" ]; do
    name=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest='' ;; esac
    case $name in
    '' | .) continue ;;
    ..) at=${at%/*} && continue ;;
    esac
    next=$at/$name
    [ -e "$next" ] || [ -L "$next" ] || return 0
    owner=$(stat -c %u "$next")
    # Guard path-owner. Root or this user owns each folder and link of the path.
    if [ "$owner" != 0 ] && [ "$owner" != "$(id -u)" ]; then
      printf '%s\n' "${next#"$R"} belongs to user $owner: use a path that only root can change, as of a folder of root"
      return 0
    fi
    if [ -L "$next" ]; then
      [ $((links += 1)) -le 40 ] || { printf '%s\n' "$1 has too many symbolic links" && return 0; }
      target=$(readlink "$next")
      case $target in /*) at='' ;; esac
      rest=$target/$rest
      continue
    fi
    # In a folder with the sticky bit, such as /tmp, users other than root cannot replace a file of root.
    # Guard path-parents. Nobody else may write to a folder of the path.
    if [ -d "$next" ] && [ -k "$next" ]; then :; elif others_write "$next"; then return 0; fi
    at=$next
  done
  # Guard path-end. Nobody else may write to the file itself.
  [ -z "$at" ] || others_write "$at" || true
)
# Prints a sentence if a user other than root may write to this file or folder.
others_write() {
  mode=$(stat -c %a "$1") group=$(stat -c %g "$1")
  # Guard path-mode. The bits for others and for the group count.
  if [ $((0$mode & 2)) = 0 ]; then
    [ $((0$mode & 16)) != 0 ] && [ "$group" != "$(id -g)" ] && ! is_empty_staff "$group" || return 1
  fi
  printf '%s\n' "others may write to ${1#"$R"}: run chmod go-w ${1#"$R"}"
}
# `is_empty_staff GROUP` succeeds if GROUP is the group staff of Debian, which may write to /usr/local, and has no
# member. It fails if the host also reads groups from a source other than its own files, because these files may then
# not list all members.
is_empty_staff() {
  [ -z "$(sed -n 's/#.*//;s/\[[^]]*\]//g;s/^ *\(passwd\|group\|initgroups\)://p' /etc/nsswitch.conf 2>/dev/null |
    tr -s ' \t' '\n' | grep -vxE 'files|compat|systemd|' || true)" ] || return 1
  case $(getent group "$1" 2>/dev/null) in staff:*:"$1": | staff:*:"$1":root) ;; *) return 1 ;; esac
  ! getent passwd | cut -d : -f 1,4 | grep -v '^root:' | grep -q ":$1\$"
}
# `untrusted_option NAME PATH` does the same as `untrusted` for the path in an option of kubeadm. It also checks the
# files in a folder, and the folder of patches that a configuration names.
untrusted_option() (
  [ -e "$2" ] || { printf '%s\n' "kubeadm: no file $2 on this host" && return 0; }
  # Guard option-path. Nobody else can replace what the option names.
  problem=$(untrusted "$2")
  if [ -d "$2" ]; then
    # Guard option-files. The files in a folder of patches count, too.
    for file in "$2"/* "$2"/.[!.]*; do [ -n "$problem" ] || problem=$(untrusted "$file"); done
  fi
  [ -z "$problem" ] || { printf '%s\n' "kubeadm.$1: $problem" && return 0; }
  # Guard option-patches. The folder of patches that a configuration names counts, too.
  [ ! -f "$2" ] || patches_of "$2" | while read -r folder; do untrusted_option "$1 names patches" "$folder"; done
)
patches_of() {
  sed -n "/^ *#/d;s/.*directory[\"']*: *//p" "$1" | sed "s/ #.*//;s/[]}\"',[:space:]]*\$//;s/^[\"']//"
}
# `make_private` makes the folder in which files are checked and staged readable only by root. It sets NEW to `yes` if
# the folder did not exist.
make_private() {
  NEW=''
  [ -d "$D" ] || NEW=yes
  # Backed by private-owner. Nobody else can replace the folder of Refit.
  problem=$(untrusted "${D%/*}")
  [ -z "$problem" ] || fail "$problem"
  # Guard private-folder. Only root can read and change what lies there.
  (umask 077 && mkdir -p "$D") && chmod 700 "$D"
  # Guard private-owner. Root owns the folder of Refit.
  problem=$(untrusted "$D")
  [ -z "$problem" ] || fail "$problem"
}
