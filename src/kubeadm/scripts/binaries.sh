# shellcheck shell=sh disable=SC2034,SC2154
# `wrong NAME FILE SHA256` says what is wrong with a binary. runc has versions of its own.
version_of() {
  case $1 in
  kubelet) "$2" --version 2>&1 | sed 's/^Kubernetes //' ;;
  kubectl) "$2" version --client 2>&1 | sed -n 's/^Client Version: //p' ;;
  kubeadm) "$2" version -o short 2>&1 || true ;;
  runc) ! "$2" --version >/dev/null 2>&1 || echo "$VERSION" ;;
  *) "$2" -v 2>&1 | sed -n 's/.*[ v]\([0-9][0-9]*\.[0-9]*\.[0-9]*\).*/v\1/p' ;;
  esac
}
wrong() {
  [ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { echo "$FIELD.$1.sha256 does not match the file"; return; }
  found=$(version_of "$1" "$2")
  [ "$found" = "$VERSION" ] || echo "$FIELD.$1 has version $found, expected $VERSION"
}
