# `keep_static_pods` copies the manifests of the static pods before kubeadm changes them. `note_static_pods` records the
# manifests that kubeadm wrote. `settle_static_pods` finishes a roll-back that a crash interrupted. Needs ROLLOUT and
# VERSION.
# uses: parts/prelude.sh parts/static-pods.sh

# `copy_manifests` copies the manifests, or prints why the static pods cannot be rolled back. If a manifest already has
# the target version, an earlier run installed it.
copy_manifests() {
  for name in $COMPONENTS; do
    file=$MANIFESTS/$name.yaml
    [ -e "$file" ] || [ -L "$file" ] || continue
    problem=$(wrong_manifest "$file")
    [ -z "$problem" ] || { printf '%s\n' "$problem" && return 0; }
    [ "$name" = etcd ] || [ "$(tag "$file")" != "$VERSION" ] ||
      { printf '%s\n' "$name.yaml had $VERSION before this rollout" && return 0; }
    copy_whole "$file" "$PODS/$name.yaml"
    sync "$PODS/$name.yaml"
  done
}
# The journal is written last. So if there is no journal, no manifests were kept. If a run is repeated, the manifests
# from before its first start stay.
keep_static_pods() {
  if [ "$(written rollout)" = "$ROLLOUT" ] && [ "$(written state)" != 'done' ]; then return 0; fi
  rm -rf "$PODS"
  mkdir -p "$PODS"
  chmod 700 "$PODS"
  why=$(copy_manifests)
  set -- "rollout $ROLLOUT" ${why:+"without $why"}
  if [ -z "$why" ]; then
    for name in $COMPONENTS; do
      [ ! -e "$PODS/$name.yaml" ] || set -- "$@" "kept $name $(sha256_of "$PODS/$name.yaml")"
    done
  fi
  write_journal none "$@"
}
note_static_pods() {
  set --
  for name in $COMPONENTS; do
    [ ! -f "$MANIFESTS/$name.yaml" ] || set -- "$@" "placed $name $(sha256_of "$MANIFESTS/$name.yaml")"
  done
  write_journal 'placed|state' "$@"
}
# Finishes a roll-back that was interrupted. If that fails, the upgrade still continues, because kubeadm writes all
# manifests again.
settle_static_pods() {
  case $(written state) in
  begun | undoing) (static_pods_back "$(written rollout)") || true ;;
  esac
}
