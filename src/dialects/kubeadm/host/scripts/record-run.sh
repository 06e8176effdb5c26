# Before `note begun`, so that this record belongs to the run that the journal names last.
{
  echo "$ROLLOUT"
  echo "version $VERSION"
  for file in "$MANIFESTS"/*.yaml; do echo "manifest ${file##*/} $(sha256sum <"$file")"; done
  for folder in "$BACKUPS"/kubeadm-backup-manifests-*; do echo "backup ${folder##*/}"; done
} >"$RUN.new"
sync "$RUN.new"
mv "$RUN.new" "$RUN"
