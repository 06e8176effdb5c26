# `keep NAME FILE` keeps a file in the state before the rollout. It copies the file only once. `is_kept` fails unless
# the files of this rollout are kept. Needs ROLLOUT.
# uses: parts/prelude.sh

# The files in /var/lib/kubelet that kubeadm writes.
KUBELET_FILES='config.yaml kubeadm-flags.env instance-config.yaml'
is_kept() { [ "$(cat "$D/previous/.rollout" 2>/dev/null)" = "$ROLLOUT" ]; }
keep() {
  [ ! -e "$D/previous/$1" ] && [ -e "$2" ] || return 0
  copy_whole "$2" "$D/previous/.new"
  sync "$D/previous/.new"
  mv "$D/previous/.new" "$D/previous/$1"
}
