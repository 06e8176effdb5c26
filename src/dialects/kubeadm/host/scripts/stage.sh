# Stages the binaries of the upgrade. Replaces nothing.
# uses: parts/prelude.sh parts/step.sh parts/fetch.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout. The journal's lines of other rollouts do not count.
#   STEP=stage  Name of the step in the journal.
#   VERSION=v1.36.3  The version of Kubernetes that the host is upgraded to.
#   NAMES=kubeadm kubelet kubectl  The binaries that are replaced.
#   SOURCES=kubeadm kind path  Lines `NAME KEY VALUE`, which say where each of NAMES comes from; see parts/binaries.sh.
#   CONTAINERD_VERSION=v2.3.3  The version of containerd; empty if containerd stays as it is.
#   CONTAINERD_NAMES=runc containerd  The binaries of containerd, the daemon last.
#   CONTAINERD_SOURCES=containerd kind path  Lines as in SOURCES.

seen 'done' && exit 0
note begun
fetch_all
note 'done'
