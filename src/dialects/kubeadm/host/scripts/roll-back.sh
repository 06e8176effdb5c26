# Puts kubeadm, the kubelet and its configuration back as the rollout found them, and prints the version of the kubelet. Static
# pods stay: they have a script of their own.
# uses: parts/prelude.sh parts/packages.sh parts/journal.sh parts/keep.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout that replaced them.

# Without a kept kubelet the rollout has replaced nothing on this host.
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
