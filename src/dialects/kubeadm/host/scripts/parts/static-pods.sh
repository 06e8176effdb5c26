# Rolls back the static pods. `static_pods_back ROLLOUT` restores the manifests that keep-static-pods.sh copied to PODS.
# It restores either all of them or none. The journal of PODS has the hash of each manifest. Its line `state` records
# the progress of the roll-back: begun, undoing, undone or done.
# uses: parts/prelude.sh parts/backups.sh parts/trusted.sh parts/journal.sh

PODS=$D/static-pods
sha256_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
minor_of() { tag "$1" | sed -n 's/^v\{0,1\}\([0-9][0-9]*\.[0-9][0-9]*\)\..*/\1/p'; }
staged_of() { printf '%s\n' "$MANIFESTS/.$1.yaml.refit"; }
written() { sed -n "s/^$1 //p" "$PODS/journal" 2>/dev/null | tail -n 1; }
# `write_journal FIRST LINES...` removes the lines that begin with FIRST, and adds LINES, in one rename. It ends the script if it cannot.
write_journal() (
  without=$1
  shift
  {
    grep -vE "^($without) " "$PODS/journal" 2>/dev/null || true
    [ $# -eq 0 ] || printf '%s\n' "$@"
  } >"$PODS/journal.new" && sync "$PODS/journal.new" && mv "$PODS/journal.new" "$PODS/journal"
) || fail "cannot write $PODS/journal"
# `is_hash WHAT NAME FILE` fails unless FILE has the hash that the journal has for NAME. WHAT is kept or placed.
is_hash() { [ -f "$3" ] && grep -qxF "$1 $2 $(sha256_of "$3")" "$PODS/journal"; }
# `wrong_manifest FILE` prints why root must not copy or replace FILE.
wrong_manifest() {
  # Guard manifest-link. A link could lead to a file of somebody else.
  if [ -L "$1" ] || [ ! -f "$1" ]; then
    printf '%s\n' "${1#"$R"} is not a regular file"
  else
    # Guard manifest-path. Nobody else can replace the manifest.
    untrusted "$1"
  fi
}
# `stay_reason ROLLOUT` prints why the manifests must not be restored. The data of etcd is never rolled back, and an
# etcd or API server of an earlier minor version may not be able to read this data.
stay_reason() {
  if [ "$(written rollout)" != "$1" ]; then echo 'this rollout kept no manifests' && return 0; fi
  why=$(written without)
  [ -z "$why" ] || { printf '%s\n' "their manifests were not kept: $why" && return 0; }
  differs=
  for name in $COMPONENTS; do
    was=$PODS/$name.yaml now=$MANIFESTS/$name.yaml
    if ! grep -q "^kept $name " "$PODS/journal"; then
      if [ -e "$now" ] || [ -L "$now" ]; then printf '%s\n' "$name.yaml is new since the upgrade" && return 0; fi
      continue
    fi
    for file in "$was" "$now"; do
      problem=$(wrong_manifest "$file")
      [ -z "$problem" ] || { printf '%s\n' "$problem" && return 0; }
    done
    # Backed by staged-manifest. Only the manifest that was kept is restored.
    is_hash kept "$name" "$was" || { printf '%s\n' "${was#"$R"} does not match its hash in the journal" && return 0; }
    ! is_hash kept "$name" "$now" || continue
    # Backed by staged-manifest. A manifest that a person changed is not replaced.
    is_hash placed "$name" "$now" || { printf '%s\n' "$name.yaml was changed after kubeadm wrote it" && return 0; }
    differs=yes
    older=$(minor_of "$was") newer=$(minor_of "$now")
    { [ -n "$older" ] && [ "$older" = "$newer" ]; } || {
      printf '%s\n' "$name would go from $(tag "$now") to $(tag "$was"), and only the same minor version can read the data of etcd"
      return 0
    }
  done
  [ -n "$differs$(written state | grep -x 'begun')" ] || echo 'kubeadm did not change their manifests'
}
# `stage_manifest WHAT NAME FILE` copies FILE next to the manifest, and checks the hash of the copy. The kubelet ignores the copy
# because its name begins with a dot: extractFromDir in pkg/kubelet/config/file.go of Kubernetes lists `[^.]*`, and
# produceWatchEvent in file_linux.go skips such names.
stage_manifest() {
  staged=$(staged_of "$2")
  # Guard staged-manifest. The copy that replaces the manifest is the copy that was checked.
  rm -rf "$staged" && cp -p "$3" "$staged" && { attributes "$3" "$staged" || true; } && chmod 600 "$staged" &&
    sync "$staged" && is_hash "$1" "$2" "$staged"
}
# `each_manifest FUNCTION ARGUMENTS...` calls `FUNCTION ARGUMENTS... NAME` for each manifest that was kept. It stops
# after the first call that fails.
each_manifest() {
  for name in $COMPONENTS; do
    ! grep -q "^kept $name " "$PODS/journal" || "$@" "$name" || return 1
  done
}
# `stage_kept NAME` stages a kept manifest. It also keeps a copy of the manifest that kubeadm wrote. This copy is needed
# if a rename fails.
stage_kept() {
  now=$MANIFESTS/$1.yaml
  ! is_hash kept "$1" "$now" || return 0
  rm -f "$PODS/$1.placed"
  # Guard placed-copy. The copy for the way back is the manifest that was checked.
  copy_whole "$now" "$PODS/$1.placed" && sync "$PODS/$1.placed" && is_hash placed "$1" "$PODS/$1.placed" &&
    stage_manifest kept "$1" "$PODS/$1.yaml"
}
rename_staged() { [ ! -e "$(staged_of "$1")" ] || mv -f "$(staged_of "$1")" "$MANIFESTS/$1.yaml"; }
remove_staged() { rm -f "$(staged_of "$1")"; }
undo_manifest() {
  now=$MANIFESTS/$1.yaml
  remove_staged "$1"
  # A manifest is replaced only if the roll-back itself has installed it.
  # Guard undone-manifest. The manifest of a person is not replaced.
  is_hash kept "$1" "$now" && [ -e "$PODS/$1.placed" ] || return 0
  stage_manifest placed "$1" "$PODS/$1.placed" && mv -f "$(staged_of "$1")" "$now"
}
undo_static_pods() {
  write_journal state 'state undoing'
  each_manifest undo_manifest || fail "the manifests are a mix: see $MANIFESTS, with copies in $PODS"
  write_journal state 'state undone'
}
# Copies the end of the logs of each static pod, because these logs may show the cause of the problem. The kubelet
# removes the logs of a pod when its manifest is removed.
keep_logs() {
  for name in $COMPONENTS; do
    for log in "$R/var/log/pods/kube-system_$name-"*/"$name"/*.log; do
      if [ -f "$log" ] && [ ! -L "$log" ]; then tail -n 100 "$log"; fi
    done >"$PODS/$name.log" || true
  done
}
static_pods_back() {
  [ "$(written state)" != undoing ] || undo_static_pods
  if [ "$(written state)" != 'done' ] || [ "$(written rollout)" != "$1" ]; then
    why=$(stay_reason "$1")
    [ -z "$why" ] || fail "$why"
    each_manifest stage_kept || {
      each_manifest remove_staged
      fail "cannot stage the manifests in $MANIFESTS"
    }
    [ "$(written state)" = begun ] || keep_logs
    write_journal state 'state begun'
    { each_manifest rename_staged && sync "$MANIFESTS"; } || {
      undo_static_pods
      fail "cannot replace the manifests in $MANIFESTS: those of the upgrade are back"
    }
    # The step is removed from the journal, so that kubeadm upgrades this host again in the next run.
    forget "$1 kubeadm " || fail "cannot write $J"
    write_journal state 'state done'
  fi
  each_manifest tell_version
}
tell_version() { printf '%s\n' "$1 $(tag "$MANIFESTS/$1.yaml")"; }
