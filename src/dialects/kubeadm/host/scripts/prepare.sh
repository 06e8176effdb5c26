# Stages the binaries, and runs the checks of the staged kubeadm on the host. Workers have no credentials for `upgrade
# apply`.
# uses: parts/prelude.sh parts/trusted-options.sh parts/flags.sh parts/fetch.sh parts/upgrade-plan.sh parts/other-manifests.sh
# input:
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   NAMES=kubeadm kubelet kubectl  The binaries that are replaced.
#   SOURCES=kubeadm kind path  Lines `NAME KEY VALUE`, which say where each of NAMES comes from; see parts/binaries.sh.
#   CONTAINERD_VERSION=v2.3.3  The version of containerd; empty if containerd stays as it is.
#   CONTAINERD_NAMES=runc containerd  The binaries of containerd, the daemon last.
#   CONTAINERD_SOURCES=containerd kind path  Lines as in SOURCES.
#   CONFIG=/etc/kubernetes/upgrade.yaml  A file with an UpgradeConfiguration, or empty.
#   PATCHES=/etc/kubernetes/patches  A folder with patches, or empty.
#   IGNORED=Swap,Mem  Checks of the preflight that do not count, or empty.
#   CHECK=apply  Which preflight kubeadm runs: that of `upgrade apply` or that of `upgrade node`; empty if it has no phases.
#   PLAN=yes  Whether kubeadm also says what the upgrade would do; empty if not.

# Guard options-of-prepare. kubeadm reads its options as root.
refuse_untrusted
refuse_copies
fetch_all
case $CHECK in
apply) with_flags "$D/staged/kubeadm" upgrade apply phase preflight "$VERSION" --yes ;;
node) with_flags "$D/staged/kubeadm" upgrade node phase preflight ;;
esac
[ -z "$PLAN" ] || upgrade_plan
