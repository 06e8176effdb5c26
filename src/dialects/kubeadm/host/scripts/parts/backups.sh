# kubeadm never deletes its backups, not even on a host that became a worker. So a backup alone does not prove that its
# manifest must be restored. Before each run, the host records its manifests with their hashes, and its backups.
# `is_ours` succeeds if the last run was interrupted. Such a run leaves one new backup, and exactly one manifest is
# missing. The other manifests are unchanged or have the version of the run. `of_run NAME` prints a backup that has the
# recorded hash of the manifest. `by_hand NAME` prints `hand PATH` for a backup from a kubeadm that a person ran, or
# `refused REASON`.
# uses: parts/prelude.sh

RUN=$D/kubeadm.run
COMPONENTS='etcd kube-apiserver kube-controller-manager kube-scheduler'
list() { ls -1dt "$BACKUPS"/kubeadm-backup-manifests-*/"$1.yaml" 2>/dev/null || true; }
tag() { image_of "$1" | sed 's/@.*//; s/.*\///; s/.*://'; }
is_open() {
  last=$(grep ' kubeadm ' "$D/kubeadm.journal" 2>/dev/null | tail -n 1)
  [ -e "$RUN" ] && [ "$last" = "$(head -n 1 "$RUN") kubeadm begun" ]
}
is_controller() { [ -e "$R/etc/kubernetes/controller-manager.conf" ]; }
is_recorded() { grep -qxF "manifest $1.yaml $(sha256sum <"$2")" "$RUN"; }
new_backups() {
  for folder in "$BACKUPS"/kubeadm-backup-manifests-*; do
    [ ! -d "$folder" ] || grep -qxF "backup ${folder##*/}" "$RUN" || printf '%s\n' "$folder"
  done
}
is_ours() {
  is_controller && is_open && [ "$(new_backups | wc -l)" -eq 1 ] || return 1
  lost=0
  for other in $COMPONENTS; do
    file=$MANIFESTS/$other.yaml
    if [ ! -e "$file" ]; then
      ! grep -q "^manifest $other.yaml " "$RUN" || lost=$((lost + 1))
    elif [ "$other" != etcd ]; then
      # Guard other-manifests. A person has worked on this host since the run.
      is_recorded "$other" "$file" || grep -qxF "version $(tag "$file")" "$RUN" || return 1
    fi
  done
  [ "$lost" -eq 1 ]
}
of_run() {
  is_ours || return 0
  # If kubeadm fails or is killed, it leaves the new manifests that it did not install. If no new manifest is left,
  # something other than kubeadm has removed the manifest.
  [ -n "$(find "$BACKUPS" -path "*/kubeadm-upgraded-manifests*/$1.yaml" -newer "$RUN")" ] || return 0
  file=$(new_backups)/$1.yaml
  # Guard recorded-backup. A backup counts only with the hash that the run recorded.
  [ ! -e "$file" ] || ! is_recorded "$1" "$file" || printf '%s\n' "$file"
}
by_hand() {
  file=$(list "$1" | head -n 1)
  [ -n "$file" ] || return 0
  is_controller || { echo "refused /etc/kubernetes/controller-manager.conf is missing: this is no control-plane host"; return 0; }
  [ "$1" != etcd ] || { printf '%s\n' "refused a backup of etcd is never restored without the journal of its run"; return 0; }
  mine=$(tag "$file")
  for other in kube-apiserver kube-controller-manager kube-scheduler; do
    [ "$other" != "$1" ] || continue
    [ -e "$MANIFESTS/$other.yaml" ] || { printf '%s\n' "refused $other.yaml is missing too"; return 0; }
    running=$(tag "$MANIFESTS/$other.yaml")
    [ "$(printf '%s\n' "$mine" "$running" | sort -V | head -n 1)" = "$running" ] && continue
    printf '%s\n' "refused the backup has $mine, but $other runs $running"
    return 0
  done
  printf '%s\n' "hand $file"
}
