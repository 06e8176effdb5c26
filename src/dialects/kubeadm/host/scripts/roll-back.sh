# Nothing was replaced then.
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
