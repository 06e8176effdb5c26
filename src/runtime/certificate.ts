/** Reads the certificate of the server from files, and reads it again when they change. */
import { X509Certificate } from 'node:crypto';
import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { ifPossible, messageOf, RefitError } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  /**
   * The file with a certificate authority. If it is set, clients need a certificate of that authority. If it is
   * undefined, clients need no certificate.
   */
  readonly clientAuthority?: string | undefined;
}

/**
 * Reads the files as options of a TLS server. It rejects with REFIT_FILE if a file is unreadable,
 * or if the key does not match the certificate.
 */
export async function readCertificate(files: CertificateFiles): Promise<SecureContextOptions> {
  const { certificate, key, clientAuthority } = files;
  try {
    const authority =
      clientAuthority === undefined ? {} : { ca: await readFile(clientAuthority, 'utf8') };
    // Node.js would accept a file without a certificate, and then reject every client.
    if (authority.ca !== undefined && !ifPossible(() => new X509Certificate(authority.ca)))
      throw new Error(`${clientAuthority} has no certificate in PEM`);
    const options = {
      cert: await readFile(certificate, 'utf8'),
      key: await readFile(key, 'utf8'),
      ...authority,
      minVersion: 'TLSv1.2',
    } as const;
    createSecureContext(options);
    return options;
  } catch (error) {
    throw new RefitError(
      'REFIT_FILE',
      `cannot use ${certificate} with ${key}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Calls `set` with the new certificate each time the files have changed and are a valid pair, until the returned object
 * is disposed of. It watches the directories, because tools replace the files by renames and links.
 */
export function followCertificate(
  files: CertificateFiles,
  set: (options: SecureContextOptions) => void,
  log: Logger,
) {
  const reload = (): void => {
    readCertificate(files).then(set, (error: unknown) =>
      log.warn('cannot load the new certificate, using the previous one', {
        reason: messageOf(error),
      }),
    );
  };
  const paths = [files.certificate, files.key, files.clientAuthority].filter(
    (path) => path !== undefined,
  );
  const watchers = new DisposableStack();
  for (const directory of new Set(paths.map((path) => dirname(path)))) {
    const watcher = watchers.adopt(watch(directory, reload), (it) => it.close());
    watcher.on('error', (error) =>
      log.warn('cannot watch the certificate files', { directory, reason: error }),
    );
  }
  return watchers;
}
