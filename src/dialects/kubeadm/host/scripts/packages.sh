# For binaries that belong to packages: of Debian through apt-get, RPM packages through dnf or zypper.
# `find_package NAME` sets FILE, MANAGER, and PACKAGE, empty if there is none. Holds, locks and excludes stay.
APT='env DEBIAN_FRONTEND=noninteractive apt-get -qqy --no-remove -o APT::Sandbox::User=root
  -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold
  -o APT::Get::ReInstall=1 -o APT::Get::allow-downgrades=1 -o APT::Get::allow-change-held-packages=1'
# In the words of dnf 4 and of dnf 5. Locks of dnf 5 are no plugin, and concern no downloads.
DNF='dnf -qy --setopt=disable_excludes=all,*'
ZYPPER='env ZYPP_LOCK_TIMEOUT=600 zypper -nq'
RPM='rpm -U --oldpackage --replacepkgs'
file_of() { readlink -f "$(command -v "$1")" || true; }
find_package() {
  FILE=$(readlink -f "$(command -v "$1")") MANAGER=apt-get REFRESH='apt-get update' || true
  PACKAGE=$(dpkg-query --admindir="$R/var/lib/dpkg" -S "$FILE" 2>/dev/null) || PACKAGE=
  [ -z "$PACKAGE" ] || PACKAGE=$(echo "$PACKAGE" | sed -n 's/^\([^ :]*\):.*/\1/p')
  [ -z "$PACKAGE" ] || return 0
  MANAGER=zypper REFRESH='zypper refresh'
  ! command -v dnf >/dev/null || MANAGER=dnf REFRESH='dnf makecache'
  PACKAGE=$(rpm -qf --qf '%{NAME}' "$FILE" 2>/dev/null) || PACKAGE=
}
# Versions of Debian's own packages may go on with a tilde.
is_in_apt() {
  for end in '-*' '~*'; do
    WANTED=$PACKAGE=${VERSION#v}$end
    ! $APT --print-uris download "$WANTED" >/dev/null 2>&1 || return 0
  done
  return 1
}
version_of_package() { rpm -q --qf '%{VERSION}' "$PACKAGE" 2>/dev/null || dpkg-query -W -f '${Version}' "$PACKAGE"; }
is_known() {
  case $MANAGER in
  apt-get) is_in_apt ;;
  dnf) $DNF -C --disableplugin=versionlock repoquery "$PACKAGE-${VERSION#v}" 2>/dev/null | grep -q "^$PACKAGE-" ;;
  zypper) $ZYPPER --no-refresh search -x "$PACKAGE=${VERSION#v}" >/dev/null 2>&1 ;;
  esac
}
# Into NAME.packages, which is there only once it is complete, and the binary as NAME.new.
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
install_package() {
  find_package "$1"
  case $(ls "$D/staged/$1.packages") in
  *.deb) install_deb "$D/staged/$1.packages"/*.deb ;;
  *)
    $RPM "$D/staged/$1.packages"/*.rpm
    # dnf's locks name a version.
    lock=$(rpm -q --qf '%{EPOCHNUM}:%{VERSION}-%{RELEASE}' "$PACKAGE")
    list=$R/etc/dnf/plugins/versionlock.list toml=$R/etc/dnf/versionlock.toml
    [ ! -e "$list" ] || sed -i "s/^$PACKAGE-[0-9]*:[0-9].*/$PACKAGE-$lock.*/" "$list"
    [ ! -e "$toml" ] || sed -i '/^name = "'"$PACKAGE"'"/,/^\[\[packages]]/{/^comparator = "="/{n;s/^value = .*/value = "'"$lock"'"/;};}' "$toml"
    ;;
  esac
}
install_deb() {
  # Kept until all of them hold again: apt-get takes holds away, also where it fails.
  [ -e "$D/held" ] || { apt-mark showhold >"$D/held.new" && mv "$D/held.new" "$D/held"; }
  { [ -z "$(dpkg --audit)" ] || dpkg --force-confold --configure -a; } && $APT install "$1" && code=0 || code=$?
  xargs -r apt-mark -qq hold <"$D/held"
  [ "$code" = 0 ] || exit "$code"
  rm "$D/held"
}
# `install_from FOLDER NAME`: a rename, so that a binary is never incomplete, or a package, whose hold stays.
install_from() {
  if [ -d "$D/$1/$2.packages" ]; then
    install_package "$2"
  else
    target=$(file_of "$2")
    cp -p "$D/$1/$2" "$target.refit"
    # As with place_back: a host without a working binary is worse than one without an attribute.
    if [ "$1" = previous ]; then attributes "$D/$1/$2" "$target.refit" || true; else like "$target" "$target.refit"; fi
    sync "$target.refit"
    mv "$target.refit" "$target"
  fi
}
