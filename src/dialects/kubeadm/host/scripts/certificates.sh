# Renews certificates with the kubeadm of this host. Does not restart anything.
# uses: parts/prelude.sh parts/step.sh parts/static-pod-form.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout. The journal's lines of other rollouts do not count.
#   STEP=certificates  Name of the step in the journal.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   RENEWALS=apiserver etcd-server  What kubeadm calls the certificates that it renews.
#   STATIC_PODS=etcd kube-apiserver  The static pods that are restarted afterwards.

# `renew NAME` renews one certificate. It fails if kubeadm renewed nothing, or if kubeadm used its defaults instead of
# the configuration of the cluster. In both cases kubeadm only prints a message and exits with 0.
renew() {
  said=$(kubeadm certs renew "$1" 2>&1) || fail "$said"
  printf '%s\n' "$said"
  case $said in
  *'MISSING!'* | *'Detected external'* | *'Falling back to default'*)
    fail "kubeadm did not renew $1 by the configuration of the cluster: no static pod was restarted"
    ;;
  esac
}

seen 'done' && exit 0
for component in $STATIC_PODS; do form_of "$MANIFESTS/$component.yaml"; done
note begun
for name in $RENEWALS; do renew "$name"; done
note 'done'
