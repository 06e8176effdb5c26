# For binaries that belong to packages: of Debian through apt-get, RPM packages through dnf or zypper.
# `find_package NAME` sets FILE, MANAGER, and PACKAGE, empty if there is none. `install_from FOLDER NAME` puts a binary or its
# package in place. Holds, locks and excludes stay.
# uses: prelude.sh

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
version_of_package() { rpm -q --qf '%{VERSION}' "$PACKAGE" 2>/dev/null || dpkg-query -W -f '${Version}' "$PACKAGE"; }
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
