#!/bin/sh
# Enters a stand-in host: `enter-host.sh ROOT COMMAND` runs COMMAND, which reads its script from standard input, with ROOT for
# the host's file system. Tests can hold a script before it runs, or its answer after it ran: ROOT/hooks/hold-before and
# hold-after name a text; a script with that text waits as long as ROOT/hooks/held is there. It is lost where that became
# ROOT/hooks/lost meanwhile, as with a connection that broke.
REFIT_ROOT=$1
PATH=$1/usr/bin:$PATH
export REFIT_ROOT PATH
# Nearly always: then no process is started for what nobody asks.
[ -e "$REFIT_ROOT/hooks/hold-before" ] || [ -e "$REFIT_ROOT/hooks/hold-after" ] || exec sh -c "$2"
script=$(cat)
hold() {
  [ -e "$REFIT_ROOT/hooks/$1" ] || return 0
  case $script in *"$(cat "$REFIT_ROOT/hooks/$1")"*) ;; *) return 0 ;; esac
  mv "$REFIT_ROOT/hooks/$1" "$REFIT_ROOT/hooks/held"
  # A test that was killed lets go of nothing: two minutes are more than any other needs.
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
