/**
 * Tests on a real API server what a k0s Plan does with nodes that join or leave while it runs: `newNodes` and `goneNodes` of
 * a policy, and the messages that users read.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { events, nodes } from '../../src/kube/resources.ts';
import { listed, selected } from '../support/builders/plans.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'new-nodes';

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = await clientOf('admin');
  controller = new RefitProcess('controller', '--kubeconfig', await kubeconfigFor('controller'));
});
afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  admin.close();
});

/** Creates nodes that are Ready and have this label, and returns them. */
async function joining(pool: string, ...names: readonly string[]): Promise<Puppets> {
  const puppets = await Puppets.create(admin, ...names);
  for (const name of names)
    await admin.patch(nodes, name, { metadata: { labels: { pool } } }, { type: 'merge' });
  return puppets;
}

async function outputOf(...args: readonly string[]): Promise<string> {
  const { stdout } = await runRefit(...args, '--kubeconfig', await kubeconfigFor('viewer'));
  return stdout.join('\n');
}

async function messagesOf(reason: string, node: string): Promise<string[]> {
  const { items } = await admin.list(events, { fieldSelector: `reason=${reason}` });
  return items.map(({ message = '' }) => message).filter((each) => each.includes(node));
}

test('without a policy, a node that joins is left, and an Event, status and why say what to do', async () => {
  await using puppets = await joining('left', 'left-w1');
  await puppets.plan(1, { targets: { workers: selected('pool=left') } });
  await puppets.until(async () => expect(await puppets.signal('left-w1')).toBeDefined());
  await using late = await joining('left', 'left-w2');
  const told = 'left-w2 joined after the plan began and is not included: a plan keeps the nodes';
  await puppets.until(async () =>
    expect(await messagesOf('NodeLeftOut', 'left-w2')).toEqual([expect.stringContaining(told)]),
  );
  for (const args of [['why', 'left-w2'], ['status']]) {
    const words = (await outputOf(...args)).replaceAll(/\s+/g, ' ');
    expect(words).toContain(told);
    expect(words).toContain('apply the plan again once it has ended');
  }
  await puppets.says('left-w1', 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await puppets.recorded()).toEqual({ 'left-w1': 'SignalCompleted' });
  expect(await late.signal('left-w2')).toBeUndefined();
});

test('with newNodes: Include, it becomes a target of the Plan, which ends with it', async () => {
  const policy = buildUpgradePolicy(POLICY, { newNodes: 'Include' });
  await admin.create(upgradePolicies, policy);
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
  await using puppets = await joining('taken', 'taken-w1');
  await puppets.plan(1, { targets: { workers: selected('pool=taken') } });
  await puppets.until(async () => expect(await puppets.signal('taken-w1')).toBeDefined());
  // The times of the API have whole seconds. A Node that is created in the second in which the Plan starts counts as
  // present at the start, so the test waits.
  const { created = '' } = (await puppets.signal('taken-w1')) ?? {};
  await puppets.until(() => expect(Date.now()).toBeGreaterThan(Date.parse(created) + 1_000));
  await using late = await joining('taken', 'taken-w2');
  await puppets.until(async () =>
    expect(await puppets.recorded()).toEqual({
      'taken-w1': 'SignalSent',
      'taken-w2': 'SignalPending',
    }),
  );
  const told = 'taken-w2 joined after the plan began and is included';
  expect((await outputOf('why', 'taken-w2')).replaceAll(/\s+/g, ' ')).toContain(told);
  await puppets.until(async () =>
    expect(await messagesOf('NodeIncluded', 'taken-w2')).toEqual([expect.stringContaining(told)]),
  );
  // The concurrency limit of the Plan applies to the new node as well.
  expect(await late.signal('taken-w2')).toBeUndefined();
  await puppets.says('taken-w1', 'Completed');
  await puppets.until(async () => expect(await late.signal('taken-w2')).toBeDefined());
  await late.says('taken-w2', 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await puppets.recorded()).toEqual({
    'taken-w1': 'SignalCompleted',
    'taken-w2': 'SignalCompleted',
  });
});

test.each<[string, UpgradePolicySpec, string, string, string]>([
  ['by default, the Plan ends', {}, 'gone', 'IncompleteTargets', 'SignalPending'],
  [
    'with goneNodes: Skip, the Plan goes on and ends without it',
    { goneNodes: 'Skip' },
    'skip',
    'Completed',
    'SignalCompleted',
  ],
])(
  'a worker that is deleted before its turn is told at once: %s',
  async (_name, spec, pool, state, ofLast) => {
    await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, spec));
    onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
    const first = `${pool}-w1`;
    const lost = `${pool}-w2`;
    const last = `${pool}-w3`;
    await using puppets = await joining(pool, first, lost, last);
    await puppets.plan(1, { targets: { workers: listed(first, lost, last) } });
    await puppets.until(async () => expect(await puppets.signal(first)).toBeDefined());
    await admin.delete(nodes, lost);
    await puppets.until(async () =>
      expect((await outputOf('status')).replaceAll(/\s+/g, ' ')).toContain(
        `${lost} is not in the cluster: unless it joins again before then, the plan`,
      ),
    );
    await puppets.says(first, 'Completed');
    if (state === 'Completed') {
      await puppets.until(async () => expect(await puppets.signal(last)).toBeDefined());
      await puppets.says(last, 'Completed');
    }
    expect((await puppets.end()).state).toBe(state);
    expect(await puppets.recorded()).toMatchObject({ [first]: 'SignalCompleted', [last]: ofLast });
  },
);
