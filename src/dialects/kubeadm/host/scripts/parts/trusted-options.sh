# `untrusted_options` prints who else could change a file that kubeadm would read as root; `refuse_untrusted` then ends the
# script. Needs CONFIG and PATCHES; an empty one is not given.
# uses: parts/prelude.sh parts/trusted.sh

untrusted_options() {
  [ -z "$PATCHES" ] || untrusted_option patches "$PATCHES"
  [ -z "$CONFIG" ] || untrusted_option config "$CONFIG"
}
refuse_untrusted() {
  problem=$(untrusted_options)
  [ -z "$problem" ] || fail "$problem"
}
