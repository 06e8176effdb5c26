# `probe NAME` says what would prevent `fetch NAME`, which stages a binary; `wrong NAME FILE SHA256` says why FILE is
# not the wanted binary.
# Needs VERSION, and what `source_of NAME` finds in SOURCES.
# uses: parts/prelude.sh parts/trusted.sh parts/packages.sh parts/fetch-packages.sh parts/processor.sh

# `value_of NAME KEY` prints a value of SOURCES, which has lines `NAME KEY VALUE`. A backslash and a line break in VALUE are
# escaped as for printf.
value_of() {
  printf '%s\n' "$SOURCES" | while IFS= read -r line; do
    case $line in "$1 $2 "*) printf '%b' "${line#"$1 $2 "}" ;; esac
  done
}
# `with_arch TEXT` prints TEXT with the processor of this host in place of `{arch}`.
with_arch() {
  rest=$1
  while :; do
    case $rest in *'{arch}'*) ;; *) break ;; esac
    printf '%s' "${rest%%'{arch}'*}$ARCH"
    rest=${rest#*'{arch}'}
  done
  printf '%s' "$rest"
}
# `source_of NAME` sets where a binary comes from: FIELD is the field of the manifest, KIND is path or url, CURL a line of curl's
# configuration, SHOWN the address without its secrets. SHA256 is empty if any file will do, and `missing` if there is a hash for
# other processors only.
source_of() {
  FIELD=$(value_of "$1" field)
  KIND=$(value_of "$1" kind)
  SOURCE=$(with_arch "$(value_of "$1" source)")
  CURL=$(with_arch "$(value_of "$1" curl)")
  SHOWN=$(with_arch "$(value_of "$1" shown)")
  SHA256=$(value_of "$1" "sha256.$ARCH")
  [ -n "$SHA256" ] || SHA256=$(value_of "$1" sha256)
}
# `version_of NAME FILE` prints the version of a binary. For a runc that runs it prints VERSION, because runc has versions of its own.
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
  [ "$3" != missing ] || { without_hash "$1"; return; }
  [ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { printf '%s\n' "$FIELD.$1.sha256 does not match the file"; return; }
  # A file that is no program is not run: a shell would run its lines as commands.
  case $(head -c 4 "$2") in ?ELF | '#!'*) ;; *) printf '%s\n' "$FIELD.$1 is no program: is it an error page?"; return ;; esac
  found=$(version_of "$1" "$2")
  [ "$found" = "$VERSION" ] || printf '%s\n' "$FIELD.$1 has version $found, expected $VERSION"
}
without_hash() { printf '%s\n' "$FIELD.$1.sha256 has no hash for $ARCH, the processor of this host"; }
# `copy_to_check NAME` copies the file SOURCE to COPY, which only root can change and which goes with this shell, or says why not.
# The copy is hashed and then run, because the owner of a folder could replace SOURCE between the two.
copy_to_check() {
  COPY='' problem=$(untrusted "$R$SOURCE")
  [ -z "$problem" ] || { printf '%s\n' "$FIELD.$1.path: $problem" && return 0; }
  find "$D" -maxdepth 1 -name 'check.*' -mmin +60 -exec rm -f {} +
  COPY=$(mktemp "$D/check.XXXXXX")
  # The copy is removed at the end, because a plan leaves nothing behind.
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
  [ ! -e "$COPY" ] || wrong "$1" "$COPY" "$SHA256"
)
is_staged() { [ -n "$SHA256" ] && [ -x "$D/staged/$1" ] && [ -z "$(wrong "$1" "$D/staged/$1" "$SHA256")" ]; }
# `probe NAME` says why `fetch NAME` would fail. It reads KIND, SOURCE, SHOWN and SHA256, which `source_of` has set.
probe() {
  find_package "$1"
  package=$1 cure="install package $1, or a file of its own, first" or=
  case $1 in
  kubectl) or=', or leave it out of binaries' ;;
  # Packages of runc have versions of their own.
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
# Everybody on the host can read arguments, so curl reads the address, with its password or token, as configuration.
download() { printf '%s\n' "$CURL" | curl -fsSL "$@" -K -; }
# `fetch NAME` stages a binary. A copy that is already staged stays if a hash proves it.
fetch() {
  find_package "$1"
  file=$D/staged/$1
  ! is_staged "$1" || { [ -n "$PACKAGE" ] && [ ! -d "$file.packages" ]; } || return 0
  rm -rf "$file.packages"
  if [ -n "$PACKAGE" ]; then
    (cd "$D/staged" && fetch_package "$1") || fail "$MANAGER cannot fetch $PACKAGE ${VERSION#v}"
  elif [ "$KIND" = url ]; then
    # These limits, in seconds, end a download from a mirror that stalls, because the host stays locked until then.
    download --retry 3 --connect-timeout 30 --speed-limit 1 --speed-time 60 --max-time 21600 -o "$file.new" ||
      fail "$FIELD.$1.url: cannot download $SHOWN"
  else
    problem=$(untrusted "$R$SOURCE")
    [ -z "$problem" ] || fail "$FIELD.$1.path: $problem"
    cp "$R$SOURCE" "$file.new" || fail "$FIELD.$1.path: no file $SOURCE on this host"
  fi
  chmod 755 "$file.new"
  # The hash does not count for a package: the package manager proves its own files, and the hash is that of the download.
  case $FIELD in containerd.*) [ -z "$PACKAGE" ] || SHA256= ;; esac
  problem=$(wrong "$1" "$file.new" "$SHA256")
  [ -z "$problem" ] || fail "$problem"
  mv "$file.new" "$file"
}
