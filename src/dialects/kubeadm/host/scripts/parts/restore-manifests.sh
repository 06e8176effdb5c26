# `restore_manifests BACKUP` restores manifests that are missing because kubeadm was killed. The next kubeadm does not
# restore them. BACKUP is empty or the path of a backup from a kubeadm that a person ran. If it is a path, a person must
# have agreed to the restore.
# uses: parts/prelude.sh parts/backups.sh

restore_manifests() {
  for name in $COMPONENTS; do
    [ ! -e "$MANIFESTS/$name.yaml" ] || continue
    file=$(of_run "$name")
    if [ -z "$file" ] && [ -n "$1" ]; then
      found=$(by_hand "$name")
      [ "$found" != "hand $1" ] || file=$1
    fi
    [ -n "$file" ] || continue
    place_back "$file" "$MANIFESTS/$name.yaml"
    printf '%s\n' "restored $name.yaml"
  done
}
