# `is_listening MANIFEST` fails unless the API server of this manifest listens.
# uses: parts/prelude.sh

is_listening() {
  port=$(flag secure-port "$1")
  cat "$R/proc/net/tcp" "$R/proc/net/tcp6" 2>/dev/null |
    awk -v port="${port:-6443}" 'BEGIN { end = sprintf(":%04X$", port) } $4 == "0A" && $2 ~ end { n++ } END { exit !n }'
}
