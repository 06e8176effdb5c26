# `certificate FILE CERTIFICATE [NAME]` prints a certificate as a fact of that name, with when its file was written. `first` prints
# the first certificate of a PEM file as one line, which `certificate` takes.
# uses: parts/prelude.sh

certificate() { printf '%s\n' "${3:-certificate}=$2 $(stat -Lc %Y "$1") ${1#"$R"}"; }
first() { awk '/BEGIN CERTIFICATE/ { on = 1; next } /END CERTIFICATE/ { exit } on { printf "%s", $0 }'; }
