# Runs BODY in its own session under the host's lock, for which it waits WAIT seconds. A full disk does not stop its log.
# Everybody on the host can read arguments, and BODY may hold a password. So BODY runs from a file of root without a name.
# input:
#   BODY=echo done  The script to run.
#   BUSY=75  The exit code if another step still holds the lock after WAIT seconds.
#   WAIT=1800  Seconds to wait for the lock.

set -u
D=${REFIT_ROOT:-}/var/lib/refit
umask 077
mkdir -p "$D"
exec 2>&1
temporary() { mktemp "${REFIT_ROOT:-}/run/refit.XXXXXX" 2>/dev/null || mktemp "$D/log.XXXXXX"; }
write_script() { printf '%s\n' 'exec 3<&-' "$BODY" 2>/dev/null >"$SCRIPT"; }
LOG=$(temporary)
SCRIPT=$(temporary)
# A full file system may have room for the name of a file, but none for its content.
on_disk() {
  rm -f "$SCRIPT" "$LOG"
  LOG=$(mktemp "$D/log.XXXXXX")
  SCRIPT=$(mktemp "$D/log.XXXXXX")
  write_script
}
write_script || on_disk || {
  rm -f "$SCRIPT" "$LOG"
  printf '%s\n' "neither /run nor $D has room for a script"
  exit 1
}
exec 3<"$SCRIPT"
rm "$SCRIPT"
setsid -w flock -o -E "$BUSY" -w "$WAIT" "$D/kubeadm.lock" sh /dev/fd/3 </dev/null >"$LOG" 2>&1
code=$?
tail -n 20 "$LOG"
cp "$LOG" "$D/last.log"
rm "$LOG"
exit $code
