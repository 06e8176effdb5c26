/** Constants and helpers that the tests of an upgrade over SSH share. */
export const HOSTS = ['cp1', 'cp2', 'w1', 'w2'];
export const MANIFEST = 'etc/kubernetes/manifests/kube-apiserver.yaml';
