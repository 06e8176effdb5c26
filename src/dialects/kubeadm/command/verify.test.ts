/** Proves what the check of the whole cluster reports if a part of it does not answer. */
import { expect, onTestFinished, test } from 'vitest';
import { startMemoryCluster } from '../../../../test/agent/memory-cluster.ts';
import { nodes } from '../../../kube/resources.ts';
import { systemClock } from '../../../util/clock.ts';
import { RefitError } from '../../../util/errors.ts';
import { parseManifest } from '../plan/manifest.ts';
import type { SshShells } from '../plan/ssh.ts';
import type { KubeadmSession } from './upgrade-session.ts';
import { verifyCluster } from './verify.ts';

const VERSION = 'v1.36.3';
const hosts =
  '{name: cp1, role: controlPlane, address: 127.0.0.1}, {name: w1, role: worker, address: 127.0.0.2}';
const binaries = '{kubeadm: {path: /a}, kubelet: {path: /b}}';
const manifest = parseManifest(
  `{version: ${VERSION}, hosts: [${hosts}], binaries: ${binaries}}`,
  'm.yaml',
);
/** Runs scripts on the hosts. The host cp1 does not answer. */
const run: SshShells['run'] = async ({ name }) =>
  name === 'cp1'
    ? await Promise.reject(new RefitError('REFIT_SSH', 'cp1 (127.0.0.1): timed out'))
    : await Promise.resolve({
        code: 0,
        stdout: `kubeadm=${VERSION}\nkubelet=${VERSION}\n`,
        stderr: '',
      });

test('a host and a list that do not answer hide neither the other hosts nor the Nodes', async () => {
  const cluster = await startMemoryCluster();
  onTestFinished(async () => await cluster.stop());
  for (const name of ['cp1', 'w1']) await cluster.admin.create(nodes, { metadata: { name } });
  const abort = AbortSignal.timeout(20_000);
  const get = async (): Promise<never> => await Promise.reject(new Error('no DaemonSets today'));
  const said: string[] = [];
  const output = { write: (text: string) => said.push(text) };
  const client = Object.assign(cluster.admin, { get });
  const session = { client, manifest, shells: { run }, clock: systemClock, abort, output };
  const state = await verifyCluster(session as unknown as KubeadmSession, 1);
  expect(state.facts.map(({ host }) => host.name)).toEqual(['w1']);
  expect(state.nodes?.map(({ metadata }) => metadata.name)).toEqual(['cp1', 'w1']);
  expect(state.checks.get('w1')).toContainEqual({ component: 'kubeadm', found: VERSION });
  const cure = 'fix that, then run the command again';
  const found = 'cp1 (127.0.0.1): timed out';
  expect(state.checks.get('cluster')).toEqual([
    { component: 'verification', found, cure },
    { component: 'verification', found: 'no DaemonSets today', cure },
  ]);
  const wait = `Waiting up to 1 ms for w1: kubelet: the Node reports no version; see journalctl -u kubelet on the host`;
  expect(said.filter((text) => text.startsWith('Waiting'))).toEqual([`${wait}\n`]);
});
