# Replaces the binaries of containerd and restarts it. The shims of containerd continue to run, so no container is
# restarted.
# uses: parts/prelude.sh parts/step.sh parts/packages.sh parts/keep-configuration.sh parts/containerd-binaries.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout. The journal's lines of other rollouts do not count.
#   STEP=containerd  Name of the step in the journal.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   CONTAINERD_VERSION=v2.3.3  The version of containerd.
#   CONTAINERD_NAMES=runc containerd  The binaries of containerd, the daemon last.
#   CONTAINERD_SOURCES=containerd kind path  Lines `NAME KEY VALUE`, which say where each comes from; see parts/binaries.sh.

seen 'done' && exit 0
keep_configuration
note begun
VERSION=$CONTAINERD_VERSION
NAMES=$CONTAINERD_NAMES
mkdir -p "$D/staged"
# The binaries are staged again if the manifest was edited after they were staged. On a host that already has all of
# NAMES, this stages nothing.
[ "$(version_of containerd "$D/staged/containerd")" = "$VERSION" ] || of_containerd fetch_containerd
if [ -e "$D/staged/containerd" ]; then
  for name in $NAMES; do keep "$name" "$(file_of "$name")"; done
  # This file marks the kept containerd. It exists until the kubelet works with the new containerd, or until all
  # binaries are restored.
  : >"$D/previous/.containerd"
  sync "$D/previous/.containerd"
  if [ -d "$D/staged/containerd.packages" ]; then
    install_package containerd
  else
    folder=$(dirname "$(file_of containerd)")
    for name in $NAMES; do
      file=$(file_of "$name")
      place "$D/staged/$name" "${file:-$folder/$name}"
    done
  fi
  systemctl restart containerd
else
  # The file of containerd may have been replaced without a restart of containerd.
  case $(readlink "/proc/$(systemctl show -p MainPID --value containerd)/exe") in
  *' (deleted)') systemctl restart containerd ;;
  esac
fi
note 'done'
