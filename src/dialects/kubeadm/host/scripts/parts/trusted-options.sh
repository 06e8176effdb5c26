# `untrusted_options` prints which users other than root could change a file that kubeadm would read as root.
# `refuse_untrusted` ends the script if there is such a user. Needs CONFIG and PATCHES. If one of them is empty, the
# option is not set.
# uses: parts/prelude.sh parts/trusted.sh

untrusted_options() {
  [ -z "$PATCHES" ] || untrusted_option patches "$PATCHES"
  [ -z "$CONFIG" ] || untrusted_option config "$CONFIG"
}
refuse_untrusted() {
  problem=$(untrusted_options)
  [ -z "$problem" ] || fail "$problem"
}
