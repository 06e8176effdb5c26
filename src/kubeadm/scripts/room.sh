# shellcheck shell=sh disable=SC2034,SC2154
# For STAGED KiB of binaries, also those before, their swap, and the copy that kubeadm makes of etcd's data; paths may share a
# file system.
  need() { [ ! -d "$2" ] || df -kP "$2" | awk -v need="$1" 'NR == 2 { print $6, $4, need }'; }
  { need "$STAGED" "$R/var/lib"; need 131072 "$R/usr/bin"
    need "$(du -sk "$R/var/lib/etcd" 2>/dev/null | cut -f 1)" "$R/etc/kubernetes"; } |
    awk '{ free[$1] = $2; sum[$1] += $3 } END { for (at in sum) if (free[at] < sum[at])
      printf "%s has %d MiB free, the upgrade needs %d MiB\n", at, free[at] / 1024, sum[at] / 1024 }'
  case $(findmnt -no OPTIONS -T "$R/var/lib") in
  *noexec*) echo "/var/lib is mounted with noexec: staged binaries cannot run there" ;;
  esac
