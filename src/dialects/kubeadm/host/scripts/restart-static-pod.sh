# Adds an annotation to a static pod, so that the kubelet restarts the pod. One rename replaces the manifest, so the
# file is never missing. The annotation is added where kubeadm writes annotations. If the manifest has no annotations,
# the block for annotations is added.
# uses: parts/prelude.sh parts/static-pod-form.sh
# input:
#   COMPONENT=kube-apiserver  The static pod.
#   NAME=upgrade.refit.dev/certificates  Name of the annotation.
#   ROLLOUT=0f2e6c1a-4d1b-4a52-9c1e-2f1f3c6b8d70  Uid of the rollout: the value of the annotation.

FILE=$MANIFESTS/$COMPONENT.yaml
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
