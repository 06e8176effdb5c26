/** Starts the extension for Cluster API as it is shipped, in its own process, for a fleet. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CallerOptions, callHook } from '../../sandbox/cluster/hook-caller.ts';
import { leases, namespaces } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import type { Clock } from '../../src/util/clock.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import {
  createAuthority,
  issueClient,
  issueServer,
  validFrom,
} from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { kubeconfigFor } from '../fleet/controller.ts';
import type { Fleet } from '../fleet/fleet.ts';

export interface BenchExtension {
  readonly process: Process;
  /** The options of a caller with a client certificate that the extension accepts. */
  readonly caller: CallerOptions;
}

const SUBJECT = { commonName: 'bench-hooks' };
const LEASE = { namespace: 'refit-system', name: 'refit-capi-extension' };

/** Resolves when the extension answers and leads. The caller removes `directory`. */
export async function startExtension(
  fleet: Fleet,
  directory: string,
  clock: Clock,
  abort: AbortSignal,
): Promise<BenchExtension> {
  await fleet.client.create(namespaces, { metadata: { name: LEASE.namespace } });
  const certificates = join(directory, 'hooks');
  for (const folder of ['logs', 'pids', 'hooks'])
    await mkdir(join(directory, folder), { recursive: true });
  const validity = validFrom(clock.now());
  const authority = createAuthority(SUBJECT, validity);
  const issuer = { subject: SUBJECT, key: authority.key };
  const names = { dns: ['localhost'], addresses: ['127.0.0.1'] };
  const server = issueServer(issuer, names, validity);
  await writeFile(join(certificates, 'tls.crt'), server.certificate);
  await writeFile(join(certificates, 'tls.key'), server.key, { mode: 0o600 });
  await writeFile(join(certificates, 'ca.crt'), authority.certificate);
  const kubeconfig = join(directory, 'hooks-kubeconfig.json');
  await writeFile(kubeconfig, JSON.stringify(kubeconfigFor(fleet.server.url)));
  const address = `127.0.0.1:${await freePort()}`;
  const caller: CallerOptions = {
    url: `https://${address}`,
    authority: authority.certificate,
    client: issueClient(issuer, { commonName: 'managers' }, validity),
    protocol: 'http/1.1',
  };
  const files = ['--cert-dir', certificates, '--client-ca', join(certificates, 'ca.crt')];
  // The simulated agents download nothing, so the URL need not exist.
  const payload = ['--payload-url', 'https://payloads.example.com/{version}/{os}-{arch}/k0s'];
  const command = await buildRefit(join(directory, 'refit'));
  const own = ['--kubeconfig', kubeconfig, '--address', address];
  const running = await startProcess({
    name: 'extension',
    command: process.execPath,
    args: [command, 'capi-extension', ...own, ...files, ...payload],
    directory,
    ready: async () => (await isLed(fleet)) && (await answers(caller)),
    clock,
    abort,
  });
  return { process: running, caller };
}

async function isLed({ client }: Fleet): Promise<boolean> {
  const { namespace, name } = LEASE;
  const lease = await client.get(leases, name, { namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  return Boolean(lease?.spec?.holderIdentity);
}

async function answers(caller: CallerOptions): Promise<boolean> {
  return await callHook(caller, 'Discovery', {}).then(
    ({ status }) => status === 'Success',
    () => false,
  );
}
