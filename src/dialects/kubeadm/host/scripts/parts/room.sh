# `room` prints a sentence for each file system that has too little space for the upgrade. The upgrade needs space for
# STAGED KiB of binaries including the previous ones, for the replacement of the binaries, and for the copy that kubeadm
# makes of etcd's data. Several paths may be on the same file system. Only the last of the folders may be missing.
# uses: parts/prelude.sh

room() {
  data=$(flag data-dir "$MANIFESTS/etcd.yaml")
  etcd=$(du -sk "$R${data:-/var/lib/etcd}/" 2>/dev/null) || true
  df -kP "$R/var/lib" "$R/usr/bin" "$R/etc/kubernetes" 2>/dev/null |
    awk -v needs="$STAGED 131072 ${etcd%%[!0-9]*}" 'BEGIN { split(needs, need, " ") }
      NR > 1 { free[$6] = $4; sum[$6] += need[NR - 1] } END { for (at in sum) if (free[at] < sum[at])
      printf "%s has %d MiB free, the upgrade needs %d MiB\n", at, free[at] / 1024, sum[at] / 1024 }'
  case $(findmnt -no OPTIONS -T "$R/var/lib") in
  *noexec*) echo "/var/lib is mounted with noexec: staged binaries cannot run there" ;;
  esac
}
