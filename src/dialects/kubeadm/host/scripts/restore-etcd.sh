# Restores a snapshot of etcd on this member, as a part of a new cluster. The old data of the member is kept in a
# different folder.
# uses: parts/prelude.sh parts/trusted.sh parts/snapshot.sh parts/listens.sh
# input:
#   SNAPSHOT=/var/backups/etcd.db  The snapshot on this host.
#   STAMP=20260101T000000Z  Names the new cluster, and what the member had before.
#   MEMBERS=cp1=https://10.0.0.1:2380,cp2=https://10.0.0.2:2380  All members, as in etcd's flag --initial-cluster; empty for facts.
#   DO=stop  The part of the restore: facts, restore_aside, stop, start_etcd or start_api_server, on all hosts in this order.

# An interrupted run may already have moved the manifests to AWAY.
AWAY=$D/restore
YAML=$MANIFESTS/etcd.yaml
[ -e "$YAML" ] || YAML=$AWAY/etcd.yaml
put_back() { [ ! -e "$AWAY/$1.yaml" ] || place_back "$AWAY/$1.yaml" "$MANIFESTS/$1.yaml"; }
DATA=$R$(flag data-dir "$YAML")
[ "$DATA" != "$R" ] || fail "no static pod of etcd: restore an external etcd by hand"

# Prints `SHA256 NAME=URL`, with the hash of the snapshot and the name and URL of the member. If a restore is not
# possible, prints the reason instead. Changes nothing.
facts() {
  [ -z "$(flag wal-dir "$YAML")" ] || fail "etcd has a --wal-dir: restore it by hand"
  command -v etcdutl >/dev/null || fail "no etcdutl in PATH: install the one of etcd's release"
  command -v curl >/dev/null || fail "no curl in PATH: it asks etcd whether it is healthy"
  [ -f "$R$SNAPSHOT" ] || fail "no file $SNAPSHOT: copy the snapshot to this path of every control-plane host"
  # Guard snapshot-path. Nobody else can replace the snapshot.
  problem=$(untrusted "$R$SNAPSHOT")
  [ -z "$problem" ] || fail "$SNAPSHOT: $problem"
  # Guard whole-snapshot. A cut snapshot is not restored.
  is_whole "$R$SNAPSHOT" || fail "$SNAPSHOT is not a whole snapshot: the hash at its end is not that of its content"
  [ ! -d "$DATA" ] || [ "$(df -kP "$DATA" | awk 'NR == 2 { print $4 }')" -gt "$(du -k "$R$SNAPSHOT" | cut -f 1)" ] ||
    fail "$DATA has no room for the snapshot"
  printf '%s\n' "$(sha256sum <"$R$SNAPSHOT" | cut -c 1-64) $(flag name "$YAML")=$(flag initial-advertise-peer-urls "$YAML")"
}

# Restores the snapshot into a folder next to the data in use, while etcd still runs. The files get the same owner as
# that data, because etcd may run as a user other than root.
restore_aside() {
  printf '%s\n' "$STAMP" >"$D/restore.stamp"
  rm -rf "$DATA/restoring"
  etcdutl snapshot restore "$R$SNAPSHOT" --data-dir "$DATA/restoring" --name "$(flag name "$YAML")" \
    --initial-advertise-peer-urls "$(flag initial-advertise-peer-urls "$YAML")" --initial-cluster "$MEMBERS" \
    --initial-cluster-token "refit-$STAMP" --bump-revision 1000000000 --mark-compacted
  chown -R --reference="$DATA" "$DATA/restoring"
}

# Ends the script if another restore has begun on this host. If two persons restored at the same time, the members would
# belong to two different clusters.
as_begun() {
  [ "$(cat "$D/restore.stamp")" = "$STAMP" ] ||
    fail "another restore has begun on this host: let it end, then run the command again"
}

# Moves the manifests away and waits until both processes have ended. etcd holds a lock on its data until it has ended.
stop() {
  as_begun
  mkdir -p "$AWAY"
  for name in kube-apiserver etcd; do
    [ ! -e "$MANIFESTS/$name.yaml" ] || mv "$MANIFESTS/$name.yaml" "$AWAY/$name.yaml"
  done
  waits=0
  while is_listening "$AWAY/kube-apiserver.yaml" || { [ -e "$DATA/member/snap/db" ] && ! flock -n "$DATA/member/snap/db" true; }; do
    [ $((waits += 1)) -lt 300 ] || fail "etcd or the API server still runs after five minutes: see crictl ps"
    sleep 1
  done
}

start_etcd() {
  as_begun
  if [ -d "$DATA/restoring/member" ]; then
    [ ! -e "$DATA/member" ] || mv "$DATA/member" "$DATA/before-restore-$STAMP"
    mv "$DATA/restoring/member" "$DATA/member"
  fi
  put_back etcd
}

start_api_server() {
  as_begun
  put_back kube-apiserver
  rm -rf "$AWAY" "$DATA/restoring" "$D/restore.stamp"
}

case $DO in
facts) facts ;;
restore_aside) restore_aside ;;
stop) stop ;;
start_etcd) start_etcd ;;
start_api_server) start_api_server ;;
esac
