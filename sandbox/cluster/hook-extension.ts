/** Runs `refit capi-extension` in a stand-in cluster: its certificate, command line and address. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Rollouts } from '../../src/dialects/capi/plan/machine-owners.ts';
import {
  createAuthority,
  issueClient,
  issueServer,
  type KeyPair,
  validFrom,
} from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import type { Cluster } from './cluster.ts';
import { payloadPath } from './served-versions.ts';

export interface ExtensionOptions {
  readonly cluster: Pick<Cluster, 'startLeading'> & {
    readonly downloads: { readonly url: string };
  };
  readonly directory: string;
  readonly kubeconfig: string;
  /** Which Machines are one plan; the default of the command if absent. */
  readonly rollouts?: Rollouts | undefined;
}

export interface Extension {
  readonly url: string;
  /** The certificate of the authority that issued the certificate of the process, in PEM. */
  readonly authority: string;
  /** The certificate and key of Cluster API's managers. */
  readonly client: KeyPair;
  /** Returns a certificate and key of another client, issued by the same authority. */
  clientOf(commonName: string): KeyPair;
  /** The command line with which `refit` is started. */
  readonly commandLine: readonly string[];
  /** Starts the process at the same address as before. The process may be killed and started any number of times. */
  start(name: string): Promise<Process>;
}

const SUBJECT = { commonName: 'stand-in-hooks' };

/** Writes the files that the process needs. Does not start the process. */
export async function prepareExtension(options: ExtensionOptions): Promise<Extension> {
  const { cluster, directory, kubeconfig, rollouts } = options;
  const validity = validFrom(Date.now());
  const authority = createAuthority(SUBJECT, validity);
  const names = { dns: ['localhost'], addresses: ['127.0.0.1'] };
  const issuer = { subject: SUBJECT, key: authority.key };
  const { certificate, key } = issueServer(issuer, names, validity);
  const certificates = join(directory, 'hooks');
  await mkdir(certificates, { recursive: true });
  await writeFile(join(certificates, 'tls.crt'), certificate);
  await writeFile(join(certificates, 'tls.key'), key, { mode: 0o600 });
  await writeFile(join(certificates, 'ca.crt'), authority.certificate);
  const address = `127.0.0.1:${await freePort()}`;
  const payload = `${cluster.downloads.url}${payloadPath('{version}')}`;
  const plans = rollouts === undefined ? [] : ['--rollouts', rollouts];
  const connection = ['--kubeconfig', kubeconfig, '--cert-dir', certificates, '--address', address];
  const flags = [...connection, ...plans];
  const managers = [
    '--client-ca',
    join(certificates, 'ca.crt'),
    '--updater-certs',
    join(directory, 'updater-certs'),
  ];
  const source = ['--payload-url', payload, '--checksum-url', `${payload}.sha256`];
  return {
    url: `https://${address}`,
    authority: authority.certificate,
    client: issueClient(issuer, { commonName: 'managers' }, validity),
    clientOf: (commonName) => issueClient(issuer, { commonName }, validity),
    commandLine: ['capi-extension', ...flags, ...managers, ...source],
    start: async (name) =>
      await cluster.startLeading(name, 'capi-extension', [...flags, ...managers, ...source]),
  };
}
