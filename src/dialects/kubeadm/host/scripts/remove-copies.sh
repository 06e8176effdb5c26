# Each run of kubeadm leaves a whole copy of etcd's data; the newest is kept.
# shellcheck disable=SC2012
ls -1dt "$BACKUPS"/kubeadm-backup-etcd-* 2>/dev/null | tail -n +2 |
  while IFS= read -r copy; do rm -rf -- "$copy"; done
