/**
 * Checks the files of a kubeconfig. Somebody who can change one of these files decides which commands run as root, and
 * which signals the agent carries out.
 */
import { resolve } from 'node:path';
import type { ClusterConfig, Pem } from '../../kube/config/cluster-config.ts';
import { messageOf, RefitError } from '../../util/errors.ts';
import { assertTrustedPath } from './trusted-path.ts';

/**
 * Throws REFIT_FILE if users other than root, or the agent's own user, could change the kubeconfig or a file that it
 * names. The message says how to fix that.
 */
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
  // Guard config-named. The files that a kubeconfig names decide as much as the kubeconfig.
  for (const file of [...files, ...named]) {
    // A command without a slash is searched in PATH, so it has no path that could be checked here.
    if (file === undefined || !file.includes('/')) continue;
    // Guard config-path. Nobody else chooses which server gives orders to the agent.
    await assertTrustedPath(resolve(file)).catch((cause: NodeJS.ErrnoException) => {
      // A missing file is accepted. The kubelet's certificate may be created later, and nobody else can write it.
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
