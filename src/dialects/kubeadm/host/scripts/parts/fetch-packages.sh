# `is_known` fails unless the package manager of PACKAGE knows the version VERSION. `fetch_package NAME` downloads the
# package. Both need VERSION, and the variables that find_package has set.
# uses: parts/prelude.sh parts/packages.sh

# `is_in_apt` sets WANTED to the package with its version. In packages from Debian itself, a tilde may follow the
# version instead of a hyphen.
is_in_apt() {
  for end in '-*' '~*'; do
    WANTED=$PACKAGE=${VERSION#v}$end
    ! $APT --print-uris download "$WANTED" >/dev/null 2>&1 || return 0
  done
  return 1
}
is_known() {
  case $MANAGER in
  apt-get) is_in_apt ;;
  dnf) $DNF -C --disableplugin=versionlock repoquery "$PACKAGE-${VERSION#v}" 2>/dev/null | grep -q "^$PACKAGE-" ;;
  zypper) $ZYPPER --no-refresh search -x "$PACKAGE=${VERSION#v}" >/dev/null 2>&1 ;;
  esac
}
# `fetch_package NAME` downloads the packages into NAME.packages, and extracts the binary to NAME.new. NAME.packages
# exists only when the download is complete.
fetch_package() (
  rm -rf "$1.packages" "$1.packages.new" && mkdir "$1.packages.new" && cd "$1.packages.new" && case $MANAGER in
  apt-get) is_in_apt && $APT download "$WANTED" && $APT --download-only install ./*.deb ;;
  dnf)
    verb=install
    ! rpm -q "$PACKAGE-${VERSION#v}" >/dev/null || verb=reinstall
    case $(file_of dnf) in
    */dnf5) $DNF download --resolve --destdir="$PWD" "$PACKAGE-${VERSION#v}" ;;
    *) $DNF --disableplugin=versionlock "$verb" --downloadonly --downloaddir="$PWD" "$PACKAGE-${VERSION#v}" ;;
    esac
    ;;
  zypper) $ZYPPER --pkg-cache-dir "$PWD" download "$PACKAGE=${VERSION#v}" && find . -mindepth 2 -name '*.rpm' -exec mv -t . {} + ;;
  esac && case $MANAGER in
  apt-get) dpkg-deb --fsys-tarfile ./*.deb | tar -xO ".$(file_of "$1")" ;;
  *) $RPM --test ./*.rpm >&2 && rpm2cpio "./$PACKAGE-${VERSION#v}"-*.rpm | cpio -i --quiet --to-stdout ".$(file_of "$1")" ;;
  esac >"../$1.new" && sync ./* && mv "$PWD" "${PWD%.new}"
)
