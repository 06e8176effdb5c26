/** The hint that says where to read why a kubelet does not start. */
export const KUBELET_LOG = 'see journalctl -u kubelet on the host';
