# Puts the manifests of the static pods back as the rollout found them, all or none, and prints the versions. Where they must stay, it
# says why and fails.
# uses: parts/prelude.sh parts/static-pods.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout that replaced them.

static_pods_back "$ROLLOUT"
