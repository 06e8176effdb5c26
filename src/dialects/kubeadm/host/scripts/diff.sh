# By a kubeadm that is staged, or by a copy of the file on this host: only root can change either.
make_private
kubeadm=$D/staged/kubeadm
if [ ! -x "$kubeadm" ] || [ -n "$(wrong kubeadm "$kubeadm" "$SHA256")" ]; then
  [ "$KIND" = path ] && [ -f "$R$SOURCE" ] || exit 0
  copy_to_check kubeadm >/dev/null
  [ -e "$COPY" ] && [ -z "$(wrong kubeadm "$COPY" "$SHA256")" ] || exit 0
  kubeadm=$COPY
fi
"$kubeadm" upgrade diff "$VERSION" 2>&1
