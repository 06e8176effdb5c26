/** Proves that a version with a huge minor is refused in a sentence that is short enough to write. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt } from '../../../test/support/builders/views.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { readIndex } from '../channel/read-index.ts';
import { decideUpdate } from './decide-update.ts';

// A version such as v1.372026001.0 would end the process (out of memory), so the test uses a version with a smaller
// minor.
test('a Plan whose version has a huge minor is refused in a short sentence', async () => {
  const update = {
    ...buildUpdate({ targets: { workers: listed('w1') } }),
    version: 'v1.200000.0+k0s.0',
  };
  const bare = buildNode('w1');
  const nodeInfo = { kubeletVersion: 'v1.36.3+k0s' };
  const worker = { ...bare, status: { ...bare.status, nodeInfo } } as typeof bare;
  const [plan] = await lookAt([buildPlan({ commands: [{ k0supdate: update }] })], [], [worker], T0);
  expect(plan?.reason).toContain('SkippedMinor');
  expect(plan?.reason?.length).toBeLessThan(1000);
});

test('a channel with a huge minor is answered in a short sentence', () => {
  const release = readIndex('version: v1.200000.0+k0s.0\ndownloadURLs: []\n');
  const settings = { schedule: { kind: 'cron' } } as never;
  const facts = { settings, release, versions: ['v1.36.3+k0s.0'], plan: undefined, now: 0 };
  const rest = { kubelets: [], allowUnverified: false, phaseOf: () => 'new' as const };
  expect(decideUpdate({ ...facts, ...rest }).message.length).toBeLessThan(1000);
});
