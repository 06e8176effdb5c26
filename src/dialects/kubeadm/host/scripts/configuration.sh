# Prints which users other than root could change the configuration that kubeadm would read. Prints nothing if the file
# is missing.
# uses: parts/prelude.sh parts/trusted.sh
# input:
#   CONFIG=/etc/kubernetes/upgrade.yaml  A file with an UpgradeConfiguration.

[ ! -e "$CONFIG" ] || untrusted_option config "$CONFIG"
