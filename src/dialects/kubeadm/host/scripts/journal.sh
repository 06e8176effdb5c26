# What this rollout has begun and done on this host: `seen WHAT`, `note WHAT`. `forget START`: of lines.
J=$D/kubeadm.journal
seen() { [ -e "$J" ] && grep -qxF -- "$ROLLOUT $STEP $1" "$J"; }
note() {
  { [ ! -e "$J" ] || cat "$J"; echo "$ROLLOUT $STEP $1"; } >"$J.new"
  sync "$J.new"
  mv "$J.new" "$J"
}
forget() {
  grep -vF -- "$1" "$J" >"$J.new" || [ $? -eq 1 ]
  sync "$J.new"
  mv "$J.new" "$J"
}
