/** Shows what `refit preview` says about a Plan of Rancher whose Job drains its node itself, for each option of `kubectl drain`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { type Pod, podDisruptionBudgets, pods } from '../../src/kube/resources.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { policyWith } from './k0s-scene.ts';
import { createRancherCluster, k3sPlan, NAMESPACE, rancherController } from './rancher.ts';
import { Stage } from './stage.ts';

type Drain = NonNullable<CattleSpec['drain']>;

/** The agent a1 runs a pod that a budget never lets go. The agent a2 runs a pod without a controller. */
async function previewOf(drain: Drain): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-preview-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  await using stage = await Stage.open(directory);
  await createRancherCluster(stage, 1, 2);
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'db', controller: true },
  ];
  const podOn = (nodeName: string, name: string, more: object): Pod => ({
    metadata: { name, namespace: NAMESPACE, ...more },
    spec: { nodeName, containers: [{ name: 'c', image: 'registry.example.com/c' }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const labels = { app: 'db' };
  await stage.create(pods, podOn('a1', 'db-0', { labels, ownerReferences }));
  await stage.create(pods, podOn('a2', 'bare', {}));
  await stage.create(podDisruptionBudgets, {
    metadata: { name: 'db', namespace: NAMESPACE },
    spec: { maxUnavailable: 0, selector: { matchLabels: labels } },
  });
  // The policy has no effect on a drain in a Job.
  const policy = policyWith({ drain: { zeroDisruptionBudgets: 'Wait', force: true } });
  await stage.create(upgradePolicies, policy);
  await stage.start(rancherController);
  await stage.wait(5);
  const { prepare: _prepare, ...spec } = k3sPlan('agent', { drain }).spec ?? {};
  const path = stage.path('plan.yaml');
  await writeFile(path, JSON.stringify({ ...k3sPlan('agent'), spec }));
  return await stage.answer('preview', '-f', path);
}

const BLOCKED =
  /warning {2}the drain of a1 may not end: PodDisruptionBudget system-upgrade\/db blocks/;
const REFUSED =
  'a2 starts, but its drain fails: system-upgrade/bare has no controller, so nothing would create it again; spec.drain.force: true of the Plan allows this';

test.each<[string, Drain]>([
  ['no option', {}],
  [
    'skipWaitForDeleteTimeout, which only shortens the wait for deleted pods',
    { skipWaitForDeleteTimeout: 60 },
  ],
])(
  'a drain of a Job with %s is blocked by budgets and by pods without a controller',
  async (_what, drain) => {
    const shown = await previewOf(drain);
    expect(shown).toMatch(BLOCKED);
    expect(shown).toContain(REFUSED);
    expect(shown).not.toMatch(/^ {2}blocked/m);
  },
);

test('a drain of a Job with disableEviction deletes pods whatever their budgets say, and refuses the same pods', async () => {
  const shown = await previewOf({ disableEviction: true });
  expect(shown).toContain(
    '1 pod would be deleted, whatever PodDisruptionBudgets say, from 2 nodes',
  );
  expect(shown).not.toMatch(BLOCKED);
  expect(shown).toContain(REFUSED);
  expect(await previewOf({ disableEviction: true, force: true })).not.toContain('its drain fails');
});
