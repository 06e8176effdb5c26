# `upgrade_plan` prints a line for each configuration in the cluster that a person must convert before this kubeadm can
# read it. If this check fails, the upgrade would fail later, in the middle. Needs VERSION.
# uses: parts/prelude.sh

upgrade_plan() {
  # Errors of the preflight are ignored here, because a preflight has already run just before.
  plan=$("$D/staged/kubeadm" upgrade plan "$VERSION" -o json --ignore-preflight-errors=all)
  printf '%s' "$plan" | tr -d ' \n' | grep -o '"group":"[^"]*"[^{}]*"manualUpgradeRequired":true' |
    sed 's/^"group":"\([^"]*\)".*/warning kubeadm: it cannot read the \1 in the cluster: convert its ConfigMap in kube-system/'
}
