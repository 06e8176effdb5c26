#!/bin/sh
# Enters a stand-in host: `enter-host.sh ROOT COMMAND` runs COMMAND, which reads its script from standard input, with
# ROOT as the host's file system. Tests can delay a script before it runs, or its answer after it ran:
# ROOT/hooks/hold-before and hold-after contain a text. A script with that text waits while ROOT/hooks/held exists. If
# ROOT/hooks/lost exists after the wait, the script fails, as if the connection had broken.
REFIT_ROOT=$1
PATH=$1/usr/bin:$PATH
export REFIT_ROOT PATH
# Usually no test delays a script. Then COMMAND runs without additional processes.
[ -e "$REFIT_ROOT/hooks/hold-before" ] || [ -e "$REFIT_ROOT/hooks/hold-after" ] || exec sh -c "$2"
script=$(cat)
hold() {
  [ -e "$REFIT_ROOT/hooks/$1" ] || return 0
  case $script in *"$(cat "$REFIT_ROOT/hooks/$1")"*) ;; *) return 0 ;; esac
  mv "$REFIT_ROOT/hooks/$1" "$REFIT_ROOT/hooks/held"
  # A test that was killed does not remove this file. Two minutes are more than any other test needs.
  waits=0
  while [ -e "$REFIT_ROOT/hooks/held" ] && [ $((waits += 1)) -lt 1200 ]; do sleep 0.1; done
  [ -e "$REFIT_ROOT/hooks/lost" ] || return 0
  rm "$REFIT_ROOT/hooks/lost"
  exit 1
}
hold hold-before
printf '%s\n' "$script" | sh -c "$2"
code=$?
hold hold-after
exit $code
