# `fetch NAME` stages a binary. `probe NAME` prints what would prevent that. `wrong NAME FILE SHA256` prints why FILE is
# not the wanted binary. Needs VERSION, and the values that `source_of NAME` reads from SOURCES.
# uses: parts/prelude.sh parts/trusted.sh parts/packages.sh parts/fetch-packages.sh parts/processor.sh

# `value_of NAME KEY` prints a value of SOURCES, which consists of lines `NAME KEY VALUE`. In VALUE, backslashes and
# line breaks are escaped as for printf.
value_of() {
  printf '%s\n' "$SOURCES" | while IFS= read -r line; do
    case $line in "$1 $2 "*) printf '%b' "${line#"$1 $2 "}" ;; esac
  done
}
# `with_arch TEXT` prints TEXT and replaces `{arch}` with the processor of this host.
with_arch() {
  rest=$1
  while :; do
    case $rest in *'{arch}'*) ;; *) break ;; esac
    printf '%s' "${rest%%'{arch}'*}$ARCH"
    rest=${rest#*'{arch}'}
  done
  printf '%s' "$rest"
}
# `source_of NAME` reads the source of a binary. It sets FIELD to the field of the manifest, KIND to path or url, CURL
# to a line of curl's configuration, and SHOWN to the address without its secrets. SHA256 is empty if the manifest
# requires no hash, and `missing` if there are hashes only for other processors.
source_of() {
  FIELD=$(value_of "$1" field)
  KIND=$(value_of "$1" kind)
  SOURCE=$(with_arch "$(value_of "$1" source)")
  CURL=$(with_arch "$(value_of "$1" curl)")
  SHOWN=$(with_arch "$(value_of "$1" shown)")
  SHA256=$(value_of "$1" "sha256.$ARCH")
  [ -n "$SHA256" ] || SHA256=$(value_of "$1" sha256)
}
# `version_of NAME FILE` prints the version of a binary. For runc it prints VERSION if runc can be executed, because the
# versions of runc are independent of containerd.
version_of() {
  case $1 in
  kubelet) said=$("$2" --version 2>&1) || true; printf '%s\n' "${said#Kubernetes }" ;;
  kubectl) "$2" version --client 2>&1 | sed -n 's/^Client Version: //p' ;;
  kubeadm) "$2" version -o short 2>&1 || true ;;
  runc) ! "$2" --version >/dev/null 2>&1 || printf '%s\n' "$VERSION" ;;
  *) "$2" -v 2>&1 | sed -n 's/.*[ v]\([0-9][0-9]*\.[0-9]*\.[0-9]*\).*/v\1/p' ;;
  esac
}
wrong() {
  built_for=$(processor_of "$2")
  ! is_foreign "$built_for" || { printf '%s\n' "$FIELD.$1 is for another processor ($built_for; this host is $PROCESSOR)"; return; }
  # Backed by binary-hash. A hash for another processor proves nothing about this file.
  [ "$3" != missing ] || { without_hash "$1"; return; }
  # Guard binary-hash. Root runs no file with another hash.
  [ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { printf '%s\n' "$FIELD.$1.sha256 does not match the file"; return; }
  # A file that is not a program is not executed, because a shell would run its text as commands.
  # Guard is-program. An error page is never run.
  case $(head -c 4 "$2") in ?ELF | '#!'*) ;; *) printf '%s\n' "$FIELD.$1 is no program: is it an error page?"; return ;; esac
  found=$(version_of "$1" "$2")
  [ "$found" = "$VERSION" ] || printf '%s\n' "$FIELD.$1 has version $found, expected $VERSION"
}
without_hash() { printf '%s\n' "$FIELD.$1.sha256 has no hash for $ARCH, the processor of this host"; }
# `copy_to_check NAME` copies the file SOURCE to COPY, or prints why this is not possible. Only root can change COPY,
# and it is removed when this shell ends. The copy is hashed and then executed. This is necessary because the owner of a
# folder could replace SOURCE between these two actions.
copy_to_check() {
  # Guard checked-source. Root checks no file that others can replace.
  COPY='' problem=$(untrusted "$R$SOURCE")
  [ -z "$problem" ] || { printf '%s\n' "$FIELD.$1.path: $problem" && return 0; }
  find "$D" -maxdepth 1 -name 'check.*' -mmin +60 -exec rm -f {} +
  COPY=$(mktemp "$D/check.XXXXXX")
  # The copy is removed at the end, because a plan must leave no file on the host.
  trap 'rm -f "$COPY"; [ -z "$NEW" ] || rmdir "$D" 2>/dev/null || true' EXIT
  trap 'exit 1' HUP INT TERM
  if ! why=$(cp "$R$SOURCE" "$COPY" 2>&1); then
    rm -f "$COPY"
    printf '%s\n' "$FIELD.$1.path: cannot copy $SOURCE to $D, where it is checked: $why"
  else
    chmod 700 "$COPY"
  fi
}
wrong_on_host() (
  make_private
  copy_to_check "$1"
  # Guard checked-copy. The file that is hashed is the file that is run.
  [ ! -e "$COPY" ] || wrong "$1" "$COPY" "$SHA256"
)
# Guard staged-hash. A file that an earlier run staged is checked again.
is_staged() { [ -n "$SHA256" ] && [ -x "$D/staged/$1" ] && [ -z "$(wrong "$1" "$D/staged/$1" "$SHA256")" ]; }
# `probe NAME` prints why `fetch NAME` would fail. It reads KIND, SOURCE, SHOWN and SHA256, which `source_of` has set.
probe() {
  find_package "$1"
  package=$1 cure="install package $1, or a file of its own, first" or=
  case $1 in
  kubectl) or=', or leave it out of binaries' ;;
  # The versions of runc packages are independent of VERSION.
  runc) package=none cure='leave it out' ;;
  esac
  if [ "${FILE##*/}" = snap ]; then
    printf '%s\n' "$1 is a snap: run snap remove $1 and install a package or a file of that name$or"
  elif [ -n "$FILE" ] && [ ! -w "${FILE%/*}" ]; then
    printf '%s\n' "$1 lies in ${FILE%/*}, which is read-only: move it to a folder that is not, also in what starts it"
  elif [ -n "$PACKAGE" ] && [ "${PACKAGE%.io}" != "$package" ]; then
    printf '%s\n' "$1 belongs to package $PACKAGE: $cure"
  elif [ -n "$PACKAGE" ] && ! command -v "$MANAGER" >/dev/null; then
    printf '%s\n' "$1 belongs to an RPM package, but neither dnf nor zypper is there to replace it: install a file of its own"
  elif [ -n "$PACKAGE" ]; then
    printf '%s\n' "warn=$1 belongs to a package: $MANAGER replaces it, not $FIELD.$1"
    is_known || printf '%s\n' "$MANAGER knows no $PACKAGE ${VERSION#v}: set up the repository of that minor version, then run $REFRESH"
  elif is_staged "$1"; then
    :
  elif [ "$SHA256" = missing ]; then
    without_hash "$1"
  elif [ "$KIND" = url ]; then
    tried=$(download -r 0-0 --max-time 20 -o /dev/null 2>&1) ||
      printf '%s\n' "$FIELD.$1.url: cannot download $SHOWN: $tried"
  elif [ ! -f "$R$SOURCE" ]; then
    printf '%s\n' "$FIELD.$1.path: no file $SOURCE on this host"
  else
    wrong_on_host "$1"
  fi
}
# Every user of the host can read arguments. So curl reads the address, which may contain a password or token, as
# configuration from its standard input.
download() { printf '%s\n' "$CURL" | curl -fsSL "$@" -K -; }
# `fetch NAME` stages a binary. If a copy is already staged and its hash is right, this copy is kept.
fetch() {
  find_package "$1"
  file=$D/staged/$1
  ! is_staged "$1" || { [ -n "$PACKAGE" ] && [ ! -d "$file.packages" ]; } || return 0
  rm -rf "$file.packages"
  if [ -n "$PACKAGE" ]; then
    (cd "$D/staged" && fetch_package "$1") || fail "$MANAGER cannot fetch $PACKAGE ${VERSION#v}"
  elif [ "$KIND" = url ]; then
    # These limits, in seconds, end a download if a mirror stops sending data. They are needed because the host stays
    # locked until the download ends.
    download --retry 3 --connect-timeout 30 --speed-limit 1 --speed-time 60 --max-time 21600 -o "$file.new" ||
      fail "$FIELD.$1.url: cannot download $SHOWN"
  else
    # Guard staged-source. Root stages no file that others can replace.
    problem=$(untrusted "$R$SOURCE")
    [ -z "$problem" ] || fail "$FIELD.$1.path: $problem"
    cp "$R$SOURCE" "$file.new" || fail "$FIELD.$1.path: no file $SOURCE on this host"
  fi
  chmod 755 "$file.new"
  # For a package, the hash is not checked. The package manager verifies its own files, and the hash in the manifest is
  # the hash of the download.
  case $FIELD in containerd.*) [ -z "$PACKAGE" ] || SHA256= ;; esac
  # Guard fetched-file. A file is staged only after its check.
  problem=$(wrong "$1" "$file.new" "$SHA256")
  [ -z "$problem" ] || fail "$problem"
  mv "$file.new" "$file"
}
