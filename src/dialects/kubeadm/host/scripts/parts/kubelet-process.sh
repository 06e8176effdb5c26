# `find_kubelet` sets what is known of the kubelet that systemd runs: KUBELET_PID, which is 0 if none runs and empty if nobody can
# say, and KUBELET_WORDS, its arguments, one a line. `words_in_files` prints the words in the files
# from which kubeadm's unit takes flags. `is_off FLAG` succeeds if the kubelet runs with the flag off, or one of these files switches it
# off for its next start.
# uses: parts/prelude.sh parts/in-use.sh

find_kubelet() {
  KUBELET_PID=$(main_pid kubelet)
  KUBELET_WORDS=$({ tr '\0' '\n' <"$R/proc/${KUBELET_PID:-0}/cmdline"; } 2>/dev/null) || KUBELET_WORDS=
}
words_in_files() {
  # systemd takes lines with either sign for comments, and separates words at tabs, too.
  sed 's/^[[:space:]]*[#;].*//' "$R/var/lib/kubelet/kubeadm-flags.env" "$R/etc/default/kubelet" "$R/etc/sysconfig/kubelet" 2>/dev/null |
    tr "\"'\t" '   ' | tr ' ' '\n'
}
# `is_false FLAG` reads words, one a line, and succeeds if the last one that sets the flag sets it to false. For the kubelet, too, the
# last one counts.
is_false() {
  value=$(sed -n "s/^KUBELET_[A-Z_]*=//; s/^--$1=//p; s/^--$1\$/true/p" | tail -n 1)
  # Go reads all of these as false.
  case $value in 0 | f | F | false | FALSE | False) ;; *) return 1 ;; esac
}
is_off() {
  printf '%s\n' "$KUBELET_WORDS" | is_false "$1" || words_in_files | is_false "$1"
}
