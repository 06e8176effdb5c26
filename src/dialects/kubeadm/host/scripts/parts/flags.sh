# `with_flags COMMAND ...` runs a command of kubeadm with the flags that all checks and upgrades of kubeadm accept.
# Needs CONFIG and IGNORED. If one of them is empty, its flag is left out.
# uses: parts/prelude.sh

with_flags() {
  [ -z "$CONFIG" ] || set -- "$@" "--config=$CONFIG"
  [ -z "$IGNORED" ] || set -- "$@" "--ignore-preflight-errors=$IGNORED"
  "$@"
}
