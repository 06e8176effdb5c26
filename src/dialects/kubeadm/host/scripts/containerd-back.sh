# The daemon is kept last: where it is, all of it is.
{ is_kept && [ -e "$D/previous/containerd" ]; } || fail 'nothing was replaced'
forget "$ROLLOUT containerd "
for name in $NAMES; do
  [ ! -e "$D/previous/$name" ] || place_back "$D/previous/$name" "$(file_of "$name")"
done
systemctl restart containerd
rm -f "$D/previous/.containerd"
find_package containerd
echo "$(containerd --version)${PACKAGE:+ (package $PACKAGE stays at $(version_of_package), with its other files)}"
