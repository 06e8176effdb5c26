# `with_flags COMMAND ...` runs a command of kubeadm with the flags that each of its checks and upgrades takes. Needs CONFIG and
# IGNORED; if one of them is empty, its flag is left out.
# uses: parts/prelude.sh

with_flags() {
  [ -z "$CONFIG" ] || set -- "$@" "--config=$CONFIG"
  [ -z "$IGNORED" ] || set -- "$@" "--ignore-preflight-errors=$IGNORED"
  "$@"
}
