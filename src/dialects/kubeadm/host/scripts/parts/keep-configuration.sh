# `keep_configuration` keeps the configuration of the kubelet as the rollout found it, before kubeadm or a new kubelet changes
# anything of it. Needs ROLLOUT and VERSION.
# uses: parts/prelude.sh parts/keep.sh

keep_configuration() {
  if ! is_kept; then
    # A kubelet of the target, or one that does not even run, is no way back: it came with an earlier run.
    found=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //')
    # Kept by an earlier run for the same way, and never put back: what is there now may be kubeadm's, for the new kubelet.
    if [ -n "$found" ] && [ "$found" != "$VERSION" ] && [ "$(cat "$D/previous/.way" 2>/dev/null)" != "$found $VERSION" ]; then
      # What is kept of containerd may be the only one that works.
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
