# `fetch_all` stages the binaries and checks their versions, before anything on the node is replaced. Needs NAMES and
# SOURCES, and the variables for containerd. CONTAINERD_VERSION is empty if containerd does not change.
# uses: parts/prelude.sh parts/binaries.sh parts/containerd-binaries.sh

fetch_all() {
  mkdir -p "$D/staged"
  for_each fetch
  [ -z "$CONTAINERD_VERSION" ] || of_containerd fetch_containerd
}
