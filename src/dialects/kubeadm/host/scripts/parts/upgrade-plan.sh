# `upgrade_plan` prints a line for each configuration in the cluster that a person must convert before this kubeadm can read it.
# What fails here would fail amid the upgrade. Needs VERSION.
# uses: parts/prelude.sh

upgrade_plan() {
  # Errors of the preflight are ignored here, because its checks have just been made.
  plan=$("$D/staged/kubeadm" upgrade plan "$VERSION" -o json --ignore-preflight-errors=all)
  printf '%s' "$plan" | tr -d ' \n' | grep -o '"group":"[^"]*"[^{}]*"manualUpgradeRequired":true' |
    sed 's/^"group":"\([^"]*\)".*/warning kubeadm: it cannot read the \1 in the cluster: convert its ConfigMap in kube-system/'
}
