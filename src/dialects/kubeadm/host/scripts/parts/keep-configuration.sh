# `keep_configuration` keeps the configuration of the kubelet in the state before the rollout. It runs before kubeadm or
# a new kubelet changes the configuration. Needs ROLLOUT and VERSION.
# uses: parts/prelude.sh parts/keep.sh

keep_configuration() {
  if ! is_kept; then
    # If the kubelet has the new version or cannot be executed, an earlier run installed it. So it must not be kept for
    # a roll-back.
    found=$(kubelet --version 2>/dev/null | sed 's/^Kubernetes //')
    # An earlier run between the same versions may have kept files and never restored them. These files are not
    # replaced, because the present files may be files that kubeadm wrote for the new kubelet.
    if [ -n "$found" ] && [ "$found" != "$VERSION" ] && [ "$(cat "$D/previous/.way" 2>/dev/null)" != "$found $VERSION" ]; then
      # The kept containerd is not removed, because it may be the only containerd that works.
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
