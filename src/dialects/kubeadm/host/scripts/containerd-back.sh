# Restores the binaries of containerd to the state before the rollout, restarts containerd, and prints its version.
# uses: parts/prelude.sh parts/packages.sh parts/journal.sh parts/keep.sh
# input:
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout that replaced them.
#   NAMES=runc containerd  The binaries of containerd, the daemon last.

# The daemon is kept last. So if the kept files include the daemon, they include all binaries of containerd.
{ is_kept && [ -e "$D/previous/containerd" ]; } || fail 'nothing was replaced'
forget "$ROLLOUT containerd "
for name in $NAMES; do
  [ ! -e "$D/previous/$name" ] || place_back "$D/previous/$name" "$(file_of "$name")"
done
systemctl restart containerd
rm -f "$D/previous/.containerd"
find_package containerd
printf '%s\n' "$(containerd --version)${PACKAGE:+ (package $PACKAGE stays at $(version_of_package), with its other files)}"
