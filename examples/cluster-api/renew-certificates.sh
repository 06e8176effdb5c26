#!/bin/sh
# A command for command-updater.ts: renews the certificates of a control-plane Machine of kubeadm, when certificateValidityPeriodDays in
# the KubeadmControlPlane changes. It also renews them in the first update of a Machine that already has this field. Cluster API first
# writes the new period into the ConfigMap kubeadm-config, where kubeadm reads it.
#
# Change: the ssh command, if the user is not root.
# Use:    node command-updater.ts 9443 /certs bootstrapConfig clusterConfiguration.certificateValidityPeriodDays ./renew-certificates.sh
set -eu

address=$(kubectl get machines.cluster.x-k8s.io "$MACHINE" --namespace "$NAMESPACE" \
  --output 'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}')

ssh -o BatchMode=yes "root@$address" sh -s -- "$VALUE" <<'HOST'
set -eu
renewed=/etc/kubernetes/renewed-for-days
if [ "$(cat "$renewed" 2>/dev/null)" = "$1" ]; then exit 0; fi
kubeadm certs renew all >&2
# Static pods read most certificates only when they start. The kubelet starts stopped containers again.
containers=$(crictl ps --quiet --name '^(kube-apiserver|kube-controller-manager|kube-scheduler|etcd)$')
for container in $containers; do crictl stop "$container" >&2; done
echo "$1" >"$renewed"
HOST
