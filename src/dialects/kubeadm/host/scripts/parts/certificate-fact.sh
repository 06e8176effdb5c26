# `certificate FILE CERTIFICATE [NAME]` prints a certificate as a fact with the name NAME, and with the time when its
# file was written. `first` prints the first certificate of a PEM file as one line. `certificate` needs this form for
# CERTIFICATE.
# uses: parts/prelude.sh

certificate() { printf '%s\n' "${3:-certificate}=$2 $(stat -Lc %Y "$1") ${1#"$R"}"; }
first() { awk '/BEGIN CERTIFICATE/ { on = 1; next } /END CERTIFICATE/ { exit } on { printf "%s", $0 }'; }
