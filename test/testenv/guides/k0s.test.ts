/** Follows docs/guides/k0s.md from an empty cluster to the end of its first upgrade, on stand-in hosts and the real API server. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../../../sandbox/cluster/cluster.ts';
import { payloadPath } from '../../../sandbox/cluster/served-versions.ts';
import { agentArguments, type Host } from '../../../sandbox/hosts/host.ts';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { validFrom } from '../../../tools/controlplane/certs.ts';
import { writeKubeconfig } from '../../../tools/controlplane/kubeconfig.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { controlPlane, kubeconfigFor } from '../control-plane.ts';
import { type Block, blocksOf } from './blocks.ts';
import { ReaderShell } from './shell.ts';

const PAGE = 'docs/guides/k0s.md';
const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.3+k0s.2';
const blocks = blocksOf(PAGE);

let directory = '';
let cluster: Cluster;
let shell: ReaderShell;
let healthPort = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-guide-'));
  cluster = await startCluster({
    plane: { url: controlPlane().url, kubeconfig: kubeconfigFor },
    directory: join(directory, 'cluster'),
    controllers: 3,
    workers: 2,
    version: FROM,
    offers: [TO],
    restartDelayMs: 300,
    // The reader of the guide starts the agents.
    agents: [],
  });
  healthPort = await freePort();
  shell = await ReaderShell.open(join(directory, 'reader'), {
    KUBECONFIG: await kubeconfigFor('admin'),
  });
  await shell.command('kubectl', `exec ${controlPlane().kubectl} "$@"`);
  await issueKubeconfigs();
});

afterAll(async () => {
  await shell[Symbol.asyncDispose]();
  await cluster.client.delete(plans, 'autopilot').catch(() => undefined);
  await cluster.stop();
  await rm(directory, { recursive: true });
});

/**
 * Provides the output of `k0s kubeconfig create USER`: a kubeconfig with a client certificate from the authority of the
 * cluster.
 */
async function issueKubeconfigs(): Promise<void> {
  const users = [
    'refit-controller',
    ...cluster.hosts.map(({ name }) => `refit:controlnode:${name}`),
  ];
  for (const commonName of users) {
    const path = join(directory, 'reader', `${commonName.replaceAll(':', '-')}.issued`);
    await writeKubeconfig(controlPlane(), path, { commonName }, validFrom(Date.now()));
  }
  await shell.command(
    'k0s',
    `[ "$1 $2" = "kubeconfig create" ] && cat "${directory}/reader/\${3//:/-}.issued"`,
  );
}

/** Replaces the names and addresses in the text of the page by those of this test. */
async function adapted(text: string, host?: Host): Promise<string> {
  const kubelet = host?.role === 'worker' ? await kubeconfigFor({ node: host.name }) : '';
  const replaced: readonly (readonly [string | RegExp, string])[] = [
    ['[c1, c2, c3]', '[controller1, controller2, controller3]'],
    [/https:\/\/example\.com\/k0s-\S+/g, `${cluster.downloads.url}${payloadPath(TO)}`],
    [/(?<=sha256: )[0-9a-f]{64}/g, cluster.downloads.sha256(payloadPath(TO))],
    ['127.0.0.1:8080', `127.0.0.1:${healthPort}`],
    // All hosts share this machine, so the leader contacts each controller at its own address and at this port.
    [/(?<=refit (controller|preview|status)\b)/g, ` --api-port ${cluster.apiPort}`],
    ['/var/lib/k0s/kubelet.conf', kubelet],
    [/\bc1\b/g, host?.name ?? 'c1'],
    // The arguments for settings that an agent would find itself on a separate host.
    [
      / agent (?=-)/g,
      host === undefined
        ? ' agent '
        : ` agent ${agentArguments(host, '')
            .filter((it) => it !== '' && it !== '--kubeconfig')
            .join(' ')} --unverified-downloads allow `,
    ],
  ];
  return replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

async function follow(block: Block): Promise<void> {
  const { use, text, title } = block;
  if (use !== 'worker' && use !== 'controller')
    return await shell.follow({ ...block, text: await adapted(text) });
  for (const host of cluster.hosts.filter(({ role }) => role === use))
    shell.start(`${title} on ${host.name}`, await adapted(text, host));
}

test('the page can be followed', () => {
  expect(blocks.map(({ use }) => use)).toEqual(
    expect.arrayContaining(['run', 'service', 'worker', 'controller', 'plan.yaml']),
  );
});

test.each(blocks)('$title', async (block) => {
  await follow(block);
  expect(shell.ended).toEqual([]);
});

test('then all nodes run the new version', async () => {
  expect((await cluster.client.get(plans, 'autopilot')).status?.state).toBe('Completed');
  expect(await Promise.all(cluster.hosts.map(async (host) => await host.version()))).toEqual(
    cluster.hosts.map(() => TO),
  );
});
