/** Runs the updaters of `examples/` as processes that the extension of a `MachineCluster` calls. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { Updater } from '../../../src/api/refit/updater-set.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../../tools/controlplane/process.ts';
import { bundleOf } from '../builders/updater-sets.ts';
import type { MachineCluster } from './machine-cluster.ts';

const EXAMPLES = new URL('../../../examples/', import.meta.url).pathname;
/** The name of the client certificate that the extension presents to updaters. */
const CLIENT = 'updaters';

export interface ExampleUpdater {
  readonly updater: Updater;
  /** The process that runs now. A test that starts another process assigns it here. */
  process: Process;
  start(): Promise<Process>;
}

export interface ExampleOptions {
  /** The name of the updater in its UpdaterSet. */
  readonly name: string;
  /** Below `examples/`. */
  readonly example: string;
  /** The arguments after the port and the folder with the certificates. */
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export async function writeClientCertificate({
  directory,
  extension,
}: MachineCluster): Promise<void> {
  const folder = join(directory, 'updater-certs', CLIENT);
  const { certificate, key } = extension.client;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tls.crt'), certificate);
  await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });
}

/**
 * Prepares an updater, and starts it. The updater shows the certificate of the stand-in's managers, and requires a
 * client certificate of their authority.
 */
export async function prepareUpdater(
  { directory, extension }: MachineCluster,
  { name, example, args, environment }: ExampleOptions,
): Promise<ExampleUpdater> {
  const port = await freePort();
  const start = async (): Promise<Process> =>
    await startProcess({
      name: `updater-${name}`,
      command: process.execPath,
      args: [join(EXAMPLES, example), String(port), join(directory, 'hooks'), ...args],
      environment,
      directory,
      ready: async () => await listensOn(port),
      clock: systemClock,
    });
  const updater: Updater = {
    name,
    url: `https://127.0.0.1:${port}`,
    caBundle: bundleOf(extension.authority),
    clientCertificate: CLIENT,
  };
  return { updater, process: await start(), start };
}

async function listensOn(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    const end = (isUp: boolean) => () => {
      socket.destroy();
      resolve(isUp);
    };
    socket.once('secureConnect', end(true)).once('error', end(false));
  });
}
