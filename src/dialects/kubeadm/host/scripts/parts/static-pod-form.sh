# `form_of FILE` ends the script unless the metadata in FILE has the format that kubeadm writes, or has no annotations.
# uses: parts/prelude.sh

form_of() {
  awk '
    /^ *(#|$)/ { next }
    before == "metadata:" { found = 1; wrong = wrong || !/^  [^ ]/ }
    before == "  annotations:" && /^   ([^ ]|  )/ { wrong = 1 }
    /^(  )?annotations: *[^ ]/ { wrong = 1 }
    { before = $0 }
    END { exit wrong || !found }
  ' "$1" || fail "${1##*/} has no metadata as kubeadm writes it: nothing was restarted"
}
