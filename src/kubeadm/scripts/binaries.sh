# shellcheck shell=sh disable=SC2034,SC2154
# `wrong NAME FILE SHA256` says what is wrong with a binary.
wrong() {
  [ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { echo "binaries.$1.sha256 does not match the file"; return; }
  case $1 in
  kubelet) found=$("$2" --version 2>&1 | sed 's/^Kubernetes //') ;;
  kubectl) found=$("$2" version --client 2>&1 | sed -n 's/^Client Version: //p') ;;
  *) found=$("$2" version -o short 2>&1 || true) ;;
  esac
  [ "$found" = "$VERSION" ] || echo "binaries.$1 has version $found, expected $VERSION"
}
