# Saves a snapshot of etcd on this host. Prints the file and its SHA-256, or the reason why there is no snapshot.
# uses: parts/prelude.sh parts/etcd.sh parts/snapshot.sh
# input:
#   VERSION=v1.36.3  The version that the upgrade leads to; it is a part of the file's name.
#   KEEP=2  How many snapshots stay on this host.
#   CERTIFICATE=-----BEGIN CERTIFICATE-----  In PEM; only who has its key can read the file. Empty: everybody who has the file.

# Guard private-snapshot. A snapshot has all keys and Secrets of the cluster.
umask 077
give_up() { rm -f "$FILE".*new; printf '%s\n' "$*"; exit 1; }
mkdir -p "$D/snapshots" 2>&1
rm -f "$D"/snapshots/*.new
FILE=$D/snapshots/etcd-before-$VERSION-$(date -u +%Y%m%dT%H%M%SZ).db
used=$(du -sk "$R$(flag data-dir "$MANIFESTS/etcd.yaml")/member" 2>/dev/null | cut -f 1)
[ "$(df -kP "$D" | awk 'NR == 2 { print $4 }')" -gt "${used:-0}" ] || give_up "$D has no room for a snapshot of etcd, ${used:-0} KiB"
why=$({ etcd maintenance/snapshot '{}' 3600 | sed -n 's/.*"blob":"\([^"]*\)".*/\1/p' | base64 -d >"$FILE.new"; } 2>&1) || true
[ -s "$FILE.new" ] || give_up "etcd gave no snapshot${why:+: $why}"
# Guard whole-copy. A cut snapshot must not pass for a backup.
is_whole "$FILE.new" || give_up "the snapshot of etcd is not whole${why:+: $why}"
! command -v etcdutl >/dev/null || etcdutl snapshot status "$FILE.new" >/dev/null || give_up "etcdutl refuses the snapshot of etcd"
if [ -n "$CERTIFICATE" ]; then
  printf '%s\n' "$CERTIFICATE" >"$FILE.crt.new"
  why=$(openssl cms -encrypt -stream -binary -aes-256-cbc -outform DER -in "$FILE.new" -out "$FILE.cms.new" "$FILE.crt.new" 2>&1) ||
    give_up "openssl cannot encrypt the snapshot of etcd: $why"
  rm "$FILE.new" "$FILE.crt.new"
  FILE=$FILE.cms
fi
sync "$FILE.new"
mv "$FILE.new" "$FILE"
# The new snapshot always stays, even if an older one has a later time because the clock of the host was wrong.
# shellcheck disable=SC2010,SC2012
ls -1t "$D"/snapshots/etcd-before-* | grep -vxF -e "$FILE" | tail -n +"$KEEP" |
  while IFS= read -r old; do rm -f -- "$old"; done
printf '%s\n' "${FILE#"$R"} with SHA-256 $(sha256sum <"$FILE" | cut -c 1-64)"
