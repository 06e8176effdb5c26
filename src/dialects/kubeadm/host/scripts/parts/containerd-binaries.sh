# `of_containerd WORK` calls a function for the binaries of containerd, in a subshell. `fetch_containerd` stages the
# binaries. `probe_containerd` prints what would prevent that. Both do nothing on a host on which each of
# CONTAINERD_NAMES already has CONTAINERD_VERSION. The last of these names is the daemon. A package of containerd
# contains all of them. Any version of runc is accepted. Also needs CONTAINERD_SOURCES. `for_each WORK` calls a function
# for each of NAMES.
# uses: parts/prelude.sh parts/packages.sh parts/binaries.sh parts/runtime.sh

for_each() {
  for name in $NAMES; do
    source_of "$name"
    "$1" "$name"
  done
}
of_containerd() (
  VERSION=$CONTAINERD_VERSION NAMES=$CONTAINERD_NAMES SOURCES=$CONTAINERD_SOURCES
  "$1"
)
has_containerd() {
  find_package containerd
  [ -z "$PACKAGE" ] || NAMES=containerd
  for name in $NAMES; do
    [ "$name" = runc ] || [ "$(version_of "$name" "$(file_of "$name")")" = "$VERSION" ] || return 1
  done
}
probe_containerd() {
  uses_containerd || { printf '%s\n' "the kubelet uses $RUNTIME, which is not containerd: leave containerd out of the manifest"; return 0; }
  # If containerd runs from another file, its restart would start the old version again.
  other=$(another_runs containerd "$(main_pid containerd)")
  [ -z "$other" ] || { printf '%s\n' "$other"; return 0; }
  ! has_containerd || return 0
  # The containerd that runs has read its configuration earlier, and the upgrade restarts it.
  why=$(containerd config dump 2>&1 >/dev/null) ||
    printf '%s\n' "containerd would not start again, because it cannot read its configuration: $(printf '%s\n' "$why" | tail -n 1)"
  [ -n "$(file_of containerd)" ] || printf '%s\n' "no containerd in PATH ($PATH): leave containerd out of the manifest"
  case $(systemctl show -p KillMode --value containerd 2>/dev/null) in
  control-group | mixed) echo "the unit of containerd lacks KillMode=process: its restart would end all containers" ;;
  esac
  for_each probe
}
fetch_containerd() {
  if has_containerd; then
    rm -rf "$D/staged/containerd"
  else
    for_each fetch
  fi
}
