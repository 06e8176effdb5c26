/** Checks the files of a connection: whoever can change one chooses commands that run as root, and whose signals count. */
import { resolve } from 'node:path';
import type { ClusterConfig, Pem } from '../../kube/config/cluster-config.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { assertTrustedPath } from './trusted-path.ts';

/** Throws REFIT_FILE when somebody else could change the kubeconfig or a file that it names, with what fixes it. */
export async function assertTrustedConfig({
  certificateAuthority,
  files,
  user,
}: ClusterConfig): Promise<void> {
  const { clientCertificate, clientKey, exec, tokenFile } = user;
  const named = [
    fileOf(certificateAuthority),
    fileOf(clientCertificate),
    fileOf(clientKey),
    tokenFile,
    exec?.command,
  ];
  for (const file of [...files, ...named]) {
    // A bare command is found in PATH.
    if (file === undefined || !file.includes('/')) continue;
    await assertTrustedPath(resolve(file)).catch((cause: NodeJS.ErrnoException) => {
      // The kubelet's certificate may still come, and nobody else can write it.
      if (cause.code === 'ENOENT') return;
      throw new RefitError('REFIT_FILE', `cannot use the kubeconfig: ${messageOf(cause)}`, {
        cause,
      });
    });
  }
}

function fileOf(pem: Pem | undefined): string | undefined {
  return pem && 'file' in pem ? pem.file : undefined;
}
