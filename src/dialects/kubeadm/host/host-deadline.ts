/**
 * The deadline of a host in milliseconds, if no UpgradePolicy sets a deadline. It allows one hour for the drain and one
 * hour for kubeadm, which may wait five minutes for each manifest.
 */
export const HOST_DEADLINE_MS = 2 * 60 * 60 * 1000;
