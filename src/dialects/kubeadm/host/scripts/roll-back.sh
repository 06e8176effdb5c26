# Restores kubeadm, the kubelet and its configuration to the state before the rollout, and prints the version of the
# kubelet. Does not change static pods, because static-pods-back.sh restores them.
# uses: parts/prelude.sh parts/packages.sh parts/journal.sh parts/keep.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout that replaced them.

# If no kubelet is kept, the rollout has replaced nothing on this host.
is_kept && [ -e "$D/previous/kubelet" ] || exit 0
forget "$ROLLOUT "
for file in $KUBELET_FILES; do
  [ ! -e "$D/previous/$file" ] || place_back "$D/previous/$file" "$R/var/lib/kubelet/$file"
done
[ ! -e "$D/previous/kubeadm" ] || install_from previous kubeadm
install_from previous kubelet
systemctl daemon-reload
systemctl restart kubelet
rm -f "$D/previous/.way"
kubelet --version
