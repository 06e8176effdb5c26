# Restores the manifests that a killed kubeadm left out, and prints their names.
# uses: parts/prelude.sh parts/restore-manifests.sh
# input:
#   BY_HAND=/etc/kubernetes/tmp/kubeadm-backup-manifests-1/etcd.yaml  The backup of another kubeadm, which a person agreed to; empty if none.

restore_manifests "$BY_HAND"
