/** Owns the server's certificate: read from files, and read again whenever they are replaced. */
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { messageOf, RefitError } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  /** Whoever calls must show a certificate that this authority issued; nobody is asked for one where absent. */
  readonly clientAuthority?: string | undefined;
}

/** Rejects with REFIT_FILE where a file cannot be read, or certificate and key do not belong together. */
export async function readCertificate(files: CertificateFiles): Promise<SecureContextOptions> {
  const { certificate, key, clientAuthority } = files;
  try {
    const options = {
      cert: await readFile(certificate, 'utf8'),
      key: await readFile(key, 'utf8'),
      ...(clientAuthority === undefined ? {} : { ca: await readFile(clientAuthority, 'utf8') }),
      minVersion: 'TLSv1.2',
    } as const;
    createSecureContext(options);
    return options;
  } catch (error) {
    throw new RefitError('REFIT_FILE', `cannot use ${certificate} with ${key}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Calls `renew` after every change that leaves a usable pair. The directories are watched and not the files: whoever
 * replaces these puts others in their place, by a rename or by turning a link.
 */
export function followCertificate(
  files: CertificateFiles,
  renew: (options: SecureContextOptions) => void,
  log: Logger,
): Disposable {
  const reload = (): void => {
    readCertificate(files).then(renew, (error: unknown) =>
      log.warn('the previous certificate stays', { reason: messageOf(error) }),
    );
  };
  const paths = [files.certificate, files.key, files.clientAuthority].filter((path) => path !== undefined);
  const watchers: FSWatcher[] = [...new Set(paths.map((path) => dirname(path)))].map((directory) =>
    watch(directory, reload).on('error', (error) =>
      log.warn('certificates are not followed', { directory, reason: error }),
    ),
  );
  return {
    [Symbol.dispose]: () => {
      for (const watcher of watchers) watcher.close();
    },
  };
}
