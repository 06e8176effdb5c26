# The file J records which steps the rollouts have begun and finished on this host. `forget START` removes the lines
# that contain START.
# uses: parts/prelude.sh

J=$D/kubeadm.journal
forget() {
  grep -vF -- "$1" "$J" >"$J.new" || [ $? -eq 1 ]
  sync "$J.new"
  mv "$J.new" "$J"
}
