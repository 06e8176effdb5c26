# Prints what kubeadm would change in the static pod manifests. Prints nothing if the host has no kubeadm of the target
# version. Leaves no file on the host.
# uses: parts/prelude.sh parts/trusted.sh parts/binaries.sh
# input:
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   SOURCES=kubeadm kind path  Lines `NAME KEY VALUE`, which say where kubeadm comes from; see parts/binaries.sh.

# The kubeadm that runs here is either the staged kubeadm or a copy of the kubeadm on this host. So only root can change
# it.
source_of kubeadm
make_private
kubeadm=$D/staged/kubeadm
# Guard diff-staged. Root runs no staged file with another hash.
if [ ! -x "$kubeadm" ] || [ -n "$(wrong kubeadm "$kubeadm" "$SHA256")" ]; then
  [ "$KIND" = path ] && [ -f "$R$SOURCE" ] || exit 0
  copy_to_check kubeadm >/dev/null
  # Guard diff-copy. Root runs no copy with another hash.
  [ -e "$COPY" ] && [ -z "$(wrong kubeadm "$COPY" "$SHA256")" ] || exit 0
  kubeadm=$COPY
fi
"$kubeadm" upgrade diff "$VERSION" 2>&1
