/** Refit's agent on a machine, and the mirror that it downloads from. */

import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { stringify } from 'yaml';
import { onVersion1 } from '../../machines/kernel.ts';
import type { Machine } from '../../machines/machine.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { KUBEADM } from '../cluster.ts';

export const MIRROR = `http://${OPERATOR}:8000`;
export const AGENT_LOG = '/var/log/refit-agent.log';
const AGENT =
  '/opt/refit/node /opt/refit/program/refit.js agent --procedure kubeadm --kubeconfig /etc/kubernetes/kubelet.conf';
/** A command of sh that starts the agent and does not wait until the agent ends. */
export const START_AGENT = `setsid sh -c 'echo $$ >/run/refit-agent.pid; exec ${AGENT}' </dev/null >>${AGENT_LOG} 2>&1 &`;

/**
 * Copies Node.js and the built Refit to the machine, at the paths of a release. `options` are options of the agent, as
 * in its file.
 */
export async function furnishAgent(
  machine: Machine,
  refit: string,
  options: object = {},
): Promise<void> {
  const at = (path: string): string => join(machine.root, path);
  await cp(dirname(refit), at('opt/refit/program'), { recursive: true });
  await cp(process.execPath, at('opt/refit/node'));
  await configureAgent(machine, options);
}

/** Writes the configuration file of an agent, whether the agent runs as a service or in a pod. */
export async function configureAgent(machine: Machine, options: object = {}): Promise<void> {
  const at = (path: string): string => join(machine.root, path);
  const ignored = { ignorePreflightErrors: onVersion1() ? ['SystemVerification'] : [] };
  const upgrade = {
    apiVersion: KUBEADM,
    kind: 'UpgradeConfiguration',
    apply: ignored,
    node: ignored,
  };
  await mkdir(at('etc/refit'));
  await writeFile(at('etc/refit/upgrade.yaml'), stringify(upgrade));
  const all = { 'kubeadm-config': '/etc/refit/upgrade.yaml', ...options };
  await writeFile(at('etc/refit/agent.yaml'), stringify(all));
}

/** Writes the list of the files that this machine offers. The checksum of the list proves all of these files. */
export async function listOffers(
  machine: Machine,
  version: string,
): Promise<{ folder: string; sha256: string }> {
  const offered = `/opt/kubernetes/${version}`;
  await machine.must(
    `cd ${offered} && sha256sum kubeadm kubelet kubectl >SHA256SUMS && sha256sum SHA256SUMS >SHA256SUMS.sha256`,
  );
  const sha256 = (await machine.must(`cat ${offered}/SHA256SUMS.sha256`)).slice(0, 64);
  return { folder: join(machine.root, offered), sha256 };
}

/** Serves the files of a directory, whatever the folder in the URL. */
export async function serve(directory: string): Promise<Server> {
  const server = createServer((request, response) => {
    void pipeline(createReadStream(join(directory, basename(request.url ?? ''))), response).catch(
      () => undefined,
    );
  });
  server.listen(Number(new URL(MIRROR).port), OPERATOR);
  await once(server, 'listening');
  return server;
}
