# These functions replace binaries that may belong to packages. apt-get replaces packages of Debian. dnf or zypper
# replaces RPM packages. `find_package NAME` sets FILE, MANAGER and PACKAGE. PACKAGE is empty if no package contains the
# binary. `install_from FOLDER NAME` installs a binary or its package. Holds, locks and excludes of packages are kept.
# uses: parts/prelude.sh

APT='env DEBIAN_FRONTEND=noninteractive apt-get -qqy --no-remove -o APT::Sandbox::User=root
  -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold
  -o APT::Get::ReInstall=1 -o APT::Get::allow-downgrades=1 -o APT::Get::allow-change-held-packages=1'
# dnf 4 accepts `all` here, and dnf 5 accepts `*`. In dnf 5, no plugin implements locks, and locks do not prevent
# downloads.
DNF='dnf -qy --setopt=disable_excludes=all,*'
ZYPPER='env ZYPP_LOCK_TIMEOUT=600 zypper -nq'
RPM='rpm -U --oldpackage --replacepkgs'
file_of() { readlink -f "$(command -v "$1")" || true; }
find_package() {
  FILE=$(readlink -f "$(command -v "$1")") MANAGER=apt-get REFRESH='apt-get update' || true
  PACKAGE=$(dpkg-query --admindir="$R/var/lib/dpkg" -S "$FILE" 2>/dev/null) || PACKAGE=
  [ -z "$PACKAGE" ] || PACKAGE=$(printf '%s\n' "$PACKAGE" | sed -n 's/^\([^ :]*\):.*/\1/p')
  [ -z "$PACKAGE" ] || return 0
  MANAGER=zypper REFRESH='zypper refresh'
  ! command -v dnf >/dev/null || MANAGER=dnf REFRESH='dnf makecache'
  PACKAGE=$(rpm -qf --qf '%{NAME}' "$FILE" 2>/dev/null) || PACKAGE=
}
version_of_package() { rpm -q --qf '%{VERSION}' "$PACKAGE" 2>/dev/null || dpkg-query -W -f '${Version}' "$PACKAGE"; }
install_package() {
  find_package "$1"
  case $(ls "$D/staged/$1.packages") in
  *.deb) install_deb "$D/staged/$1.packages"/*.deb ;;
  *)
    $RPM "$D/staged/$1.packages"/*.rpm
    # A lock of dnf contains a version. So each lock of this package is changed to the new version.
    lock=$(rpm -q --qf '%{EPOCHNUM}:%{VERSION}-%{RELEASE}' "$PACKAGE")
    list=$R/etc/dnf/plugins/versionlock.list toml=$R/etc/dnf/versionlock.toml
    [ ! -e "$list" ] || sed -i "s/^$PACKAGE-[0-9]*:[0-9].*/$PACKAGE-$lock.*/" "$list"
    [ ! -e "$toml" ] || sed -i '/^name = "'"$PACKAGE"'"/,/^\[\[packages]]/{/^comparator = "="/{n;s/^value = .*/value = "'"$lock"'"/;};}' "$toml"
    ;;
  esac
}
install_deb() {
  # apt-get removes holds, even if it fails. So a list of the holds is kept until all packages are held again.
  [ -e "$D/held" ] || { apt-mark showhold >"$D/held.new" && mv "$D/held.new" "$D/held"; }
  { [ -z "$(dpkg --audit)" ] || dpkg --force-confold --configure -a; } && $APT install "$1" && code=0 || code=$?
  xargs -r apt-mark -qq hold <"$D/held"
  [ "$code" = 0 ] || exit "$code"
  rm "$D/held"
}
# `install_from FOLDER NAME` renames a copy of the binary, so that the binary is never incomplete. If there is a
# package, it installs the package and keeps its hold.
install_from() {
  if [ -d "$D/$1/$2.packages" ]; then
    install_package "$2"
  else
    target=$(file_of "$2")
    cp -p "$D/$1/$2" "$target.refit"
    # If the previous binary is restored, a failure to set its attributes is ignored, as in `place_back`. A host without
    # a working binary is worse than a host whose binary lacks an attribute.
    if [ "$1" = previous ]; then attributes "$D/$1/$2" "$target.refit" || true; else like "$target" "$target.refit"; fi
    sync "$target.refit"
    mv "$target.refit" "$target"
  fi
}
