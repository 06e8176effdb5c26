# Restores the manifests of the static pods to the state before the rollout, either all of them or none, and prints the
# versions. If they must not be restored, prints the reason and fails.
# uses: parts/prelude.sh parts/static-pods.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout that replaced them.

static_pods_back "$ROLLOUT"
