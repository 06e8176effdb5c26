# What must run and be in PATH before an upgrade.
case $(systemctl is-active kubelet 2>/dev/null) in
inactive | failed) echo "stopped=the kubelet does not run: see journalctl -u kubelet" ;;
esac
for name in kubeadm kubelet; do
  command -v "$name" >/dev/null || echo "no $name in PATH ($PATH): install it, or set path in the manifest"
done
