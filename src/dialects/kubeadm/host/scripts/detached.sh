# Runs BODY in a separate session under the lock of the host. It waits at most WAIT seconds for the lock. If the disk is
# full, the log still works. Every user of the host can read arguments, and BODY may contain a password. So BODY is not
# an argument: it runs from a file that belongs to root and has no name any more.
# input:
#   BODY=echo done  The script to run.
#   BUSY=75  The exit code if another step still holds the lock after WAIT seconds.
#   WAIT=1800  Seconds to wait for the lock.

set -u
D=${REFIT_ROOT:-}/var/lib/refit
# Guard private-run. Logs and files of a step are for root alone.
umask 077
mkdir -p "$D"
exec 2>&1
temporary() { mktemp "${REFIT_ROOT:-}/run/refit.XXXXXX" 2>/dev/null || mktemp "$D/log.XXXXXX"; }
write_script() { printf '%s\n' 'exec 3<&-' "$BODY" 2>/dev/null >"$SCRIPT"; }
LOG=$(temporary)
SCRIPT=$(temporary)
# A full file system may have space for the name of a file, but not for its content.
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
# One line of a program may be very long. The caller ends a script that prints too much, and would run it again.
tail -n 20 "$LOG" | tail -c 65536
cp "$LOG" "$D/last.log"
rm "$LOG"
exit $code
