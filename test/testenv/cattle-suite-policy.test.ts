/** Tests what a policy adds to Rancher's Plans, on a real API server. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { cattlePlans } from '../../src/api/kinds.ts';
import { nodes } from '../../src/kube/resources.ts';
import { claimOn } from '../../src/signal/at-work.ts';
import { conditionOf, NAMESPACE } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { apply, only } from './cattle-suite-plans.ts';
import { apply as applyManifest, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NODES = ['suite-1', 'suite-2', 'suite-3'];
const ALL = { nodeSelector: { matchLabels: { pool: 'suite' } }, version: 'v1' };

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open({ suite: NODES });
});
afterAll(async () => await scene.close());

describe('a policy', () => {
  async function policy(
    name: string,
    spec: object,
    bound: readonly string[] = [name],
  ): Promise<void> {
    const plans = bound.map((each) => ({ dialect: 'cattle', namespace: NAMESPACE, name: each }));
    const metadata = { name: `suite-${name}` };
    const object = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'UpgradePolicy', metadata };
    await applyManifest(JSON.stringify({ ...object, spec: { plans, ...spec } }));
    onTestFinished(
      async () => void (await kubectlAs('admin', ['delete', 'upgradepolicy', metadata.name])),
    );
  }

  const gateOf = async (name: string): Promise<string> => {
    const flags = [
      '--plan',
      `cattle/${NAMESPACE}/${name}`,
      '--kubeconfig',
      await kubeconfigFor('admin'),
    ];
    return (await runRefit('why', ...flags)).stdout.join('\n');
  };

  test('closes the window before each node, not only before the first', async () => {
    const release = await scene.hold('suite-1', 'suite-2', 'suite-3');
    await policy('closing', {});
    await apply('closing', { ...ALL });
    await scene.until('closing', 'Complete', 'False', 'SyncJob');
    await policy('closing', { blackouts: [{ from: '2000-01-01', to: '2999-01-01' }] });
    await release();
    await vi.waitFor(async () => {
      const found = await scene.admin.get(cattlePlans, 'closing', { namespace: NAMESPACE });
      expect(conditionOf(found, 'RefitWaits').status).toBe('True');
      expect(found.status?.applying).toBeUndefined();
    }, PATIENCE);
    expect(await scene.jobsOf('closing')).toHaveLength(1);
    expect(await gateOf('closing')).toContain('blackout');
    await policy('closing', {});
    await scene.until('closing', 'Complete', 'True', 'Complete');
  });

  test('goes on within its failure budget, and stops beyond', async () => {
    await policy('budget', { failureBudget: 1 });
    await apply('budget', { ...ALL }, { 'example.com/outcome': 'failure' });
    await vi.waitFor(async () => expect(await scene.jobsOf('budget')).toHaveLength(2), PATIENCE);
    await scene.until('budget', 'Complete', 'False', 'JobFailed');
    expect(await scene.jobsOf('budget')).toHaveLength(2);
  });

  test('an UpgradePolicy starts the control plane first, then zone after zone, and refit preview shows this order', async () => {
    const labels = [
      'suite-1 zone=b',
      'suite-2 zone=a',
      'suite-3 node-role.kubernetes.io/control-plane=',
    ];
    for (const each of labels) await kubectlAs('admin', ['label', 'node', ...each.split(' ')]);
    onTestFinished(async () => {
      const keys = ['zone-', 'node-role.kubernetes.io/control-plane-'];
      await kubectlAs('admin', ['label', 'node', ...NODES, ...keys]);
    });
    await policy('ordered', { order: ['zone'] });
    const inOrder = ['suite-3', 'suite-2', 'suite-1'];
    const releases = new Map<string, () => Promise<void>>();
    for (const name of inOrder) releases.set(name, await scene.hold(name));
    await apply('ordered', { ...ALL, concurrency: 3 });
    const started = new Set<string | undefined>();
    for (const name of inOrder) {
      started.add(name);
      await vi.waitFor(async () => {
        const found = await scene.admin.get(cattlePlans, 'ordered', { namespace: NAMESPACE });
        expect(found.status?.applying).toEqual([name]);
        const known = (await scene.jobsOf('ordered')).map(
          ({ metadata }) => metadata.labels?.['upgrade.cattle.io/node'],
        );
        expect(new Set(known)).toEqual(started);
      }, PATIENCE);
      if (name === 'suite-3') {
        expect(await gateOf('ordered')).toContain(
          'suite-2 comes after suite-3 in the order of UpgradePolicy suite-ordered',
        );
        const flags = ['--kubeconfig', await kubeconfigFor('admin')];
        expect((await runRefit('preview', ...flags)).stdout.join('\n')).toMatch(
          /batch 1 +suite-2\n +batch 2 +suite-1\n/,
        );
      }
      await releases.get(name)?.();
    }
    await scene.until('ordered', 'Complete', 'True', 'Complete');
  });

  test('lets no more nodes be away than it says, whatever cordoned them', async () => {
    await policy('away', { maxUnavailable: 1, virtualNodes: 'Count' });
    await kubectlAs('admin', ['cordon', 'suite-3']);
    onTestFinished(async () => void (await kubectlAs('admin', ['uncordon', 'suite-3'])));
    await apply('away', { ...only('suite-1') });
    await vi.waitFor(async () => {
      const found = await scene.admin.get(cattlePlans, 'away', { namespace: NAMESPACE });
      expect(conditionOf(found, 'RefitWaits').status).toBe('True');
    }, PATIENCE);
    expect(await scene.jobsOf('away')).toEqual([]);
    await kubectlAs('admin', ['uncordon', 'suite-3']);
    await scene.until('away', 'Complete', 'True', 'Complete');
  });

  test('starts no Plan under a limit whose `prepare` would wait for another one', async () => {
    const release = await scene.hold('suite-2');
    await policy('prepared', { maxUnavailable: 1, virtualNodes: 'Count' }, ['agents', 'servers']);
    await apply('servers', { ...only('suite-2') });
    await apply('agents', {
      ...only('suite-1'),
      prepare: { image: 'example.com/upgrade', args: ['prepare', 'servers'] },
    });
    await scene.until('agents', 'RefitWaits', 'True', 'Gate');
    await scene.onlyJobOf('servers');
    const words =
      'suite-1 would count against maxUnavailable while it waits for Plan system-upgrade/servers';
    expect(await gateOf('agents')).toContain(words);
    expect(await scene.jobsOf('agents')).toEqual([]);
    await release();
    await scene.until('agents', 'Complete', 'True', 'Complete');
    await scene.until('servers', 'Complete', 'True', 'Complete');
  });

  test('keeps its limit over two Plans, and gets back a claim and a Job that somebody deleted', async () => {
    const claim = async (name: string) => claimOn(await scene.admin.get(nodes, name));
    const release = await scene.hold('suite-1', 'suite-2');
    await policy('limited', { maxUnavailable: 1, virtualNodes: 'Count' }, ['first', 'second']);
    await apply('first', { ...only('suite-1') });
    const { metadata } = await scene.onlyJobOf('first');
    const claimed = await claim('suite-1');
    expect(claimed).toContain(`cattle/${NAMESPACE}/first/`);
    await apply('second', { ...only('suite-2') });
    await scene.until('second', 'RefitWaits', 'True', 'Gate');
    await kubectlAs('admin', ['annotate', 'node', 'suite-1', 'upgrade.refit.dev/claimed-by-']);
    await kubectlAs('admin', ['delete', 'job', '-n', NAMESPACE, metadata.name]);
    await vi.waitFor(
      async () => expect((await scene.onlyJobOf('first')).metadata.uid).not.toBe(metadata.uid),
      PATIENCE,
    );
    await vi.waitFor(async () => expect(await claim('suite-1')).toBe(claimed), PATIENCE);
    expect(await scene.jobsOf('second')).toEqual([]);
    await release();
    await scene.until('first', 'Complete', 'True', 'Complete');
    await scene.until('second', 'Complete', 'True', 'Complete');
    for (const name of NODES)
      await vi.waitFor(async () => expect(await claim(name)).toBeUndefined(), PATIENCE);
  });
});
