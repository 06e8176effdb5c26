# shellcheck shell=sh disable=SC2012,SC2034,SC2154
# Each run of kubeadm leaves a whole copy of etcd's data; the newest is kept.
ls -1dt "$BACKUPS"/kubeadm-backup-etcd-* 2>/dev/null | tail -n +2 |
  while IFS= read -r copy; do rm -rf -- "$copy"; done
