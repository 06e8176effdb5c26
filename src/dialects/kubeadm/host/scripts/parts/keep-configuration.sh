# `keep_configuration` keeps the configuration of the kubelet as the rollout found it, before kubeadm or a new kubelet changes
# anything of it. Needs ROLLOUT and VERSION.
# uses: parts/prelude.sh parts/keep.sh

keep_configuration() {
  if ! is_kept; then
    # A kubelet of the new version, or one that does not run, came with an earlier run, so it must not be kept for the way back.
    found=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //')
    # If an earlier run between the same versions has kept files and never put them back, they stay: the present files may be those
    # that kubeadm wrote for the new kubelet.
    if [ -n "$found" ] && [ "$found" != "$VERSION" ] && [ "$(cat "$D/previous/.way" 2>/dev/null)" != "$found $VERSION" ]; then
      # The kept containerd stays, because it may be the only containerd that works.
      [ -e "$D/previous/.containerd" ] || rm -rf "$D/previous"
      for file in kubeadm kubelet $KUBELET_FILES; do rm -f "$D/previous/$file"; done
      mkdir -p "$D/previous"
      printf '%s' "$found $VERSION" >"$D/previous/.way"
    fi
    mkdir -p "$D/previous"
    printf '%s' "$ROLLOUT" >"$D/previous/.rollout"
  fi
  for file in $KUBELET_FILES; do keep "$file" "$R/var/lib/kubelet/$file"; done
}
