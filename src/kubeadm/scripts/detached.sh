# shellcheck shell=sh disable=SC2034,SC2154
# Runs BODY in its own session under the host's lock, for which it waits WAIT seconds. A full disk does not stop its log.
set -u
D=${REFIT_ROOT:-}/var/lib/refit
umask 077
mkdir -p "$D"
exec 2>&1
LOG=$(mktemp "${REFIT_ROOT:-}/run/refit.XXXXXX" 2>/dev/null || mktemp "$D/log.XXXXXX")
setsid -w flock -o -E "$BUSY" -w "$WAIT" "$D/kubeadm.lock" sh -c "$BODY" </dev/null >"$LOG" 2>&1
code=$?
tail -n 20 "$LOG"
cp "$LOG" "$D/last.log"
rm "$LOG"
exit $code
