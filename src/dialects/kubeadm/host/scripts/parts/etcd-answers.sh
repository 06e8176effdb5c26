# `etcd_answers` prints what the member of etcd at URL says of itself and of the others, as lines `etcd=JSON`; nothing if URL
# is empty. A linearizable read proves that the member and the leader reach each other.
# uses: parts/prelude.sh parts/etcd.sh

etcd_answers() {
  if [ -n "$URL" ] && ! { command -v curl >/dev/null && [ -e "$PKI/healthcheck-client.key" ]; }; then
    printf '%s\n' "warn=curl or $PKI/healthcheck-client.key is missing: the health of etcd is not checked"
    echo "etcd=404 not asked"
  elif [ -n "$URL" ]; then
    for question in 'kv/range {"key":"aGVhbHRo"}' 'maintenance/status {}' 'cluster/member/list {}' \
      'maintenance/alarm {"action":"GET"}'; do
      printf '%s\n' "etcd=$(etcd "${question%% *}" "${question#* }" 2>&1 | tr -d '\n' | cut -c 1-20000)"
    done
  fi
}
