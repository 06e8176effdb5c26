# These functions replace binaries that may belong to packages: apt-get replaces packages of Debian, dnf or zypper replace RPM
# packages. `find_package NAME` sets FILE, MANAGER, and PACKAGE, which is empty if there is none. `install_from FOLDER NAME` puts a
# binary or its package in place. Holds, locks and excludes stay.
# uses: parts/prelude.sh

APT='env DEBIAN_FRONTEND=noninteractive apt-get -qqy --no-remove -o APT::Sandbox::User=root
  -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold
  -o APT::Get::ReInstall=1 -o APT::Get::allow-downgrades=1 -o APT::Get::allow-change-held-packages=1'
# dnf 4 knows `all` here, dnf 5 knows `*`. Locks of dnf 5 belong to no plugin, and do not prevent downloads.
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
    # A lock of dnf names a version, so each lock of this package gets the new one.
    lock=$(rpm -q --qf '%{EPOCHNUM}:%{VERSION}-%{RELEASE}' "$PACKAGE")
    list=$R/etc/dnf/plugins/versionlock.list toml=$R/etc/dnf/versionlock.toml
    [ ! -e "$list" ] || sed -i "s/^$PACKAGE-[0-9]*:[0-9].*/$PACKAGE-$lock.*/" "$list"
    [ ! -e "$toml" ] || sed -i '/^name = "'"$PACKAGE"'"/,/^\[\[packages]]/{/^comparator = "="/{n;s/^value = .*/value = "'"$lock"'"/;};}' "$toml"
    ;;
  esac
}
install_deb() {
  # apt-get takes holds away, also where it fails: this list of them is kept until all packages are held again.
  [ -e "$D/held" ] || { apt-mark showhold >"$D/held.new" && mv "$D/held.new" "$D/held"; }
  { [ -z "$(dpkg --audit)" ] || dpkg --force-confold --configure -a; } && $APT install "$1" && code=0 || code=$?
  xargs -r apt-mark -qq hold <"$D/held"
  [ "$code" = 0 ] || exit "$code"
  rm "$D/held"
}
# `install_from FOLDER NAME` renames a copy of the binary, so that the binary is never incomplete, or installs a package, whose
# hold stays.
install_from() {
  if [ -d "$D/$1/$2.packages" ]; then
    install_package "$2"
  else
    target=$(file_of "$2")
    cp -p "$D/$1/$2" "$target.refit"
    # A host without a working binary is worse than one whose binary lacks an attribute, as in `place_back`.
    if [ "$1" = previous ]; then attributes "$D/$1/$2" "$target.refit" || true; else like "$target" "$target.refit"; fi
    sync "$target.refit"
    mv "$target.refit" "$target"
  fi
}
