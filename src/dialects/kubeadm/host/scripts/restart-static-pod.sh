# Gives the static pod of FILE the annotation NAME, which is ROLLOUT. It is where kubeadm writes annotations, or nowhere.
LINE="    $NAME: \"$ROLLOUT\""
if ! grep -qxF -e "$LINE" "$FILE"; then
  if grep -qx '  annotations:' "$FILE"; then after=annotations; else after=metadata; fi
  form_of "$FILE"
  cp -p "$FILE" "$D/manifest"
  awk -v name="    $NAME:" -v line="$LINE" -v after="$after" '
    index($0, name) == 1 { next }
    { print }
    $0 == "metadata:" && after == "metadata" { print "  annotations:"; print line }
    $0 == "  annotations:" && after == "annotations" { print line }
  ' "$FILE" >"$D/manifest"
  place "$D/manifest" "$FILE"
  rm "$D/manifest"
fi
