# A manifest that a killed kubeadm left out: the next one does not restore it. A name with a dot first is ignored.
# BY_HAND: the backup of another kubeadm, which a person agreed to.
for name in $COMPONENTS; do
  [ ! -e "$MANIFESTS/$name.yaml" ] || continue
  file=$(of_run "$name")
  if [ -z "$file" ] && [ -n "${BY_HAND:-}" ]; then
    found=$(by_hand "$name")
    [ "$found" != "hand $BY_HAND" ] || file=$BY_HAND
  fi
  [ -n "$file" ] || continue
  place_back "$file" "$MANIFESTS/$name.yaml"
  echo "restored $name.yaml"
done
