# What rollouts have begun and done on this host, in the file J. `forget START` removes the lines that have START in them.
# uses: parts/prelude.sh

J=$D/kubeadm.journal
forget() {
  grep -vF -- "$1" "$J" >"$J.new" || [ $? -eq 1 ]
  sync "$J.new"
  mv "$J.new" "$J"
}
