# `find_kubelet` reads the state of the kubelet that systemd runs. It sets KUBELET_PID, which is 0 if no kubelet runs
# and empty if this cannot be determined. It sets KUBELET_WORDS to the arguments of the kubelet, one per line.
# `is_off FLAG` succeeds if the flag is off in the running kubelet, or if a file switches it off for the next start.
# uses: parts/prelude.sh parts/in-use.sh parts/kubelet-start.sh

find_kubelet() {
  KUBELET_PID=$(main_pid kubelet)
  KUBELET_WORDS=$({ tr '\0' '\n' <"$R/proc/${KUBELET_PID:-0}/cmdline"; } 2>/dev/null) || KUBELET_WORDS=
}
# `is_false FLAG` reads words, one per line. It succeeds if the last word that sets the flag sets it to false. The
# kubelet also uses the last word.
is_false() {
  value=$(sed -n "s/^KUBELET_[A-Z_]*=//; s/^--$1=//p; s/^--$1\$/true/p" | tail -n 1)
  # Go parses all of these values as false.
  case $value in 0 | f | F | false | FALSE | False) ;; *) return 1 ;; esac
}
is_off() {
  printf '%s\n' "$KUBELET_WORDS" | is_false "$1" || words_in_files | is_false "$1"
}
