# Replaces the kubelet and restarts it. If the host has kubectl, it is replaced as well.
# uses: parts/prelude.sh parts/step.sh parts/packages.sh parts/keep-configuration.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout. The journal's lines of other rollouts do not count.
#   STEP=kubelet  Name of the step in the journal.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   KUBECTL=yes  Whether kubectl is replaced where the host has it; empty if not.

seen 'done' && exit 0
keep_configuration
note begun
if [ -n "$KUBECTL" ] && command -v kubectl >/dev/null; then install_from staged kubectl; fi
keep kubelet "$(file_of kubelet)"
install_from staged kubelet
systemctl daemon-reload
systemctl restart kubelet
note 'done'
rm -rf "$D/staged" "$D/previous/.containerd"
