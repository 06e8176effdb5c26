# Prints facts as lines `name=value`. The facts of facts.sh come first. The values of `hard` and `warn` are sentences.
# Leaves no file on the host.
# uses: parts/prelude.sh facts.sh parts/trusted-options.sh parts/binaries.sh parts/containerd-binaries.sh parts/room.sh parts/host.sh parts/cni.sh parts/missing-manifests.sh parts/kubelet-start.sh parts/other-manifests.sh
# input:
#   ROLE=controlPlane  The role of this host: controlPlane or worker.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   NAMES=kubeadm kubelet kubectl  The binaries that are replaced.
#   SOURCES=kubeadm kind path  Lines `NAME KEY VALUE`, which say where each of NAMES comes from; see parts/binaries.sh.
#   CONTAINERD_VERSION=v2.3.3  The version of containerd; empty if containerd stays as it is.
#   CONTAINERD_NAMES=runc containerd  The binaries of containerd, the daemon last.
#   CONTAINERD_SOURCES=containerd kind path  Lines as in SOURCES.
#   CONFIG=/etc/kubernetes/upgrade.yaml  A file with an UpgradeConfiguration, or empty.
#   PATCHES=/etc/kubernetes/patches  A folder with patches, or empty.
#   ENCRYPTS=yes  Whether snapshots of etcd are encrypted; empty if not.
#   NOW=1767225600  The time of the caller, in seconds since the Unix epoch.

problems() {
  # Before an upgrade the kubelet must run, and the programs must be in PATH.
  case $(systemctl is-active kubelet 2>/dev/null) in
  inactive | failed) echo "stopped=the kubelet does not run: see journalctl -u kubelet" ;;
  esac
  for name in kubeadm kubelet; do
    command -v "$name" >/dev/null || printf '%s\n' "no $name in PATH ($PATH): install it, or set path in the manifest"
  done
  for_each probe
  [ -z "$CONTAINERD_VERSION" ] || of_containerd probe_containerd
  untrusted_options
  [ "$ROLE" != controlPlane ] || manifest_copies
  if [ "$ROLE" = controlPlane ] && [ -n "$ENCRYPTS" ] && ! command -v openssl >/dev/null; then
    echo "no openssl in PATH: it encrypts the snapshot of etcd"
  fi
  STAGED=262144
  [ -z "$CONTAINERD_VERSION" ] || STAGED=524288
  room
}
find_runtime
problems | sed -E '/^(warn|stopped)=/!s/^/hard=/'
host_facts
flag_facts
cni_facts
if [ "$ROLE" = controlPlane ]; then
  missing_manifests
  unread_manifests
fi
other_manifests
