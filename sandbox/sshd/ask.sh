# shellcheck shell=sh disable=SC2154
# What a stand-in program of a host is asked to do: by `answerHosts`, at SOCKET. It says how the program ends.
said=$(printf '%s\n' "$REFIT_ROOT" "$@" | curl -qsS --data-binary @- --unix-socket "$SOCKET" http://localhost/) || exit 1
code=${said%% *} said=${said#* }
[ "$code" != 137 ] || kill -KILL $$
if [ "$code" != 0 ]; then
  printf '%s\n' "$said" >&2
elif [ -n "$said" ]; then
  printf '%s\n' "$said"
fi
exit "$code"
