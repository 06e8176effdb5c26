/** Tests on a real control plane that Plans of K3s keep the version rules, before a node is cordoned or gets a Job. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { reportReady } from '../../sandbox/cluster/objects.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { nodes } from '../../src/kube/resources.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { conditionOf, installKinds, NAMESPACE, planOf } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { apply, kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NOW = 'v1.36.3+k3s1';
const SERVER = 'versions-server';
const AGENT = 'versions-agent';
const upgrade = { image: 'rancher/k3s-upgrade' };
const cordon = true;

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open({ servers: [SERVER], agents: [AGENT] }, async () => {
    await installKinds();
    // The Nodes of the tests are simulated, and the rules leave such Nodes out by default.
    const metadata = { name: 'versions' };
    const policy = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'UpgradePolicy', metadata };
    await apply(JSON.stringify({ ...policy, spec: { virtualNodes: 'Count' } }));
  });
  const labels = { 'node-role.kubernetes.io/control-plane': 'true' };
  await scene.admin.patch(nodes, SERVER, { metadata: { labels } }, { type: 'merge' });
  for (const name of [SERVER, AGENT]) await runs(name, NOW);
});
afterAll(async () => {
  await scene.admin.delete(upgradePolicies, 'versions');
  await scene.close();
});

async function runs(name: string, version: string): Promise<void> {
  await reportReady(scene.admin, name, version, rfc3339(systemClock.now()));
}

async function untouched(plan: string): Promise<void> {
  expect(await scene.jobsOf(plan)).toEqual([]);
  for (const name of [SERVER, AGENT])
    expect((await scene.admin.get(nodes, name)).spec?.unschedulable).not.toBe(true);
}

test('a downgrade is refused before the first cordon, until a policy allows it', async () => {
  const all = {
    nodeSelector: { matchExpressions: [{ key: 'pool', operator: 'Exists' as const }] },
  };
  await scene.apply(planOf('versions-back', { ...all, version: 'v1.36.2+k3s1', upgrade, cordon }));
  const held = await scene.until('versions-back', 'RefitWaits', 'True', 'Gate');
  expect(conditionOf(held, 'Complete').status).toBe('False');
  await untouched('versions-back');
  const { stdout } = await runRefit(
    'why',
    '--plan',
    `cattle/${NAMESPACE}/versions-back`,
    '--kubeconfig',
    await kubeconfigFor('operator'),
  );
  expect(stdout.join(' ').replaceAll(/\s+/g, ' ')).toContain(
    `${SERVER} would go from ${NOW} down to v1.36.2+k3s1 (rule Downgrade`,
  );
  await untouched('versions-back');
  const allowed = { spec: { versions: { allow: ['Downgrade'] } } };
  await scene.admin.patch(upgradePolicies, 'versions', allowed, { type: 'merge' });
  for (const name of [SERVER, AGENT]) {
    await verified('versions-back', name);
    await runs(name, 'v1.36.2+k3s1');
  }
  await scene.until('versions-back', 'Complete', 'True', 'Complete');
  expect(await scene.jobsOf('versions-back')).toHaveLength(2);
});

/** Resolves when the Job of the Plan on the node is complete and the node waits for its kubelet, uncordoned. */
async function verified(plan: string, name: string): Promise<void> {
  await vi.waitFor(async () => {
    const own = (await scene.jobsOf(plan)).find(
      ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'] === name,
    );
    expect(own?.status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Complete', status: 'True' }),
    );
    const { metadata, spec } = await scene.admin.get(nodes, name);
    expect(spec?.unschedulable).not.toBe(true);
    expect(metadata.labels).not.toHaveProperty([`plan.upgrade.cattle.io/${plan}`]);
  }, PATIENCE);
}

test('a node whose kubelet keeps its version after its Job is uncordoned, fails after deadlines.ready, and is done after its retry', async () => {
  const version = 'v1.36.4+k3s1';
  const soon = { spec: { deadlines: { ready: '5s' } } };
  await scene.admin.patch(upgradePolicies, 'versions', soon, { type: 'merge' });
  await scene.apply(
    planOf('versions-kept', {
      version,
      upgrade,
      cordon,
      nodeSelector: { matchLabels: { pool: 'servers' } },
    }),
  );
  await verified('versions-kept', SERVER);
  const failed = await scene.until('versions-kept', 'Complete', 'False', 'VersionNotReached');
  expect(conditionOf(failed, 'Complete').message).toMatch(
    /^Job system-upgrade\/\S+ succeeded on Node versions-server: its kubelet reports v1\.36\.2\+k3s1 instead of v1\.36\.4\+k3s1$/,
  );
  const connection = ['--kubeconfig', await kubeconfigFor('operator')];
  const { stdout } = await runRefit('why', SERVER, ...connection);
  expect(stdout.join(' ').replaceAll(/\s+/g, ' ')).toContain('instead of v1.36.4+k3s1');
  await runs(SERVER, version);
  await runRefit('retry', SERVER, ...connection);
  await scene.until('versions-kept', 'Complete', 'True', 'Complete');
  expect(await scene.jobsOf('versions-kept')).toHaveLength(1);
  const later = { spec: { deadlines: null } };
  await scene.admin.patch(upgradePolicies, 'versions', later, { type: 'merge' });
});

test('agents wait while a server is a minor version older, and start when the server reports the version', async () => {
  const version = 'v1.37.0+k3s1';
  await scene.apply(
    planOf('versions-agents', {
      version,
      upgrade,
      cordon,
      nodeSelector: { matchLabels: { pool: 'agents' } },
    }),
  );
  await scene.until('versions-agents', 'RefitWaits', 'True', 'Gate');
  await untouched('versions-agents');
  await runs(SERVER, version);
  await verified('versions-agents', AGENT);
  await runs(AGENT, version);
  await scene.until('versions-agents', 'Complete', 'True', 'Complete');
  await vi.waitFor(
    async () => expect(await scene.jobsOf('versions-agents')).toHaveLength(1),
    PATIENCE,
  );
});
