/** Reads the client certificate of a kubeconfig, as `node:https` expects it. */

import type { Pem } from '../../../src/kube/config/cluster-config.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';

export async function readClientCertificate(kubeconfig: string) {
  const { certificateAuthority, user } = await loadClusterConfig({ path: kubeconfig });
  const { clientCertificate, clientKey } = user;
  return {
    ca: embedded(certificateAuthority),
    cert: embedded(clientCertificate),
    key: embedded(clientKey),
  };
}

function embedded(pem: Pem | undefined): string {
  if (pem === undefined || !('text' in pem)) throw new Error('the kubeconfig names a file');
  return pem.text;
}
