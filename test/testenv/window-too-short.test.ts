/** Tests on a real API server that a node does not start if the window closes before it would be done. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { encodeReport } from '../../src/signal/annotations.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'short-window';
const NODES = ['short-w1', 'short-w2', 'short-w3'] as const;
const HOUR = 3_600_000;
const NEXT = 'v1.36.4+k0s.0';

beforeAll(async () => {
  await installKinds();
});

test('after two nodes that took hours, the third one waits for a longer window', async () => {
  const admin = await clientOf('admin');
  onTestFinished(() => admin.close());
  // The window opened a minute ago, so it stays open for almost four hours.
  const start = new Date(Date.now() - 60_000).toISOString().slice(11, 16);
  const windows = [{ start, length: '4h', timeZone: 'UTC' }];
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { windows }));
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
  await using puppets = await Puppets.create(admin, ...NODES);
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
  );
  await puppets.plan(1);
  for (const name of NODES.slice(0, 2)) {
    await puppets.until(async () => expect(await puppets.signal(name)).toBeDefined());
    const { created = '' } = (await puppets.signal(name)) ?? {};
    await puppets.says(
      name,
      'Completed',
      encodeReport({ created, spent: { Downloading: 5 * HOUR } }),
    );
  }
  const viewer = await kubeconfigFor('viewer');
  await puppets.until(async () => {
    const { stdout } = await runRefit('why', 'short-w3', '--kubeconfig', viewer);
    const said = stdout.join('\n');
    expect(said).toContain('WindowTooShort');
    expect(said).toContain('short-w3 takes about 5 h, and the window closes at');
    expect(said).toContain('no window is that long');
  });
  expect(await puppets.signal('short-w3')).toBeUndefined();
  await admin.patch(upgradePolicies, POLICY, { spec: { windows: null } }, { type: 'merge' });
  await puppets.says('short-w3', 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the first node of a plan waits if its last upgrade took longer than the window is open', async () => {
  const admin = await clientOf('admin');
  onTestFinished(() => admin.close());
  await using puppets = await Puppets.create(admin, 'second-w1', 'second-w2');
  const controller = await kubeconfigFor('controller');
  await using leader = new RefitProcess('controller', '--kubeconfig', controller);
  await puppets.plan(2);
  for (const [name, hours] of [
    ['second-w1', 5],
    ['second-w2', 1],
  ] as const) {
    await puppets.until(async () => expect(await puppets.signal(name)).toBeDefined());
    const { created = '' } = (await puppets.signal(name)) ?? {};
    const spent = { Downloading: hours * HOUR };
    await puppets.says(name, 'Completed', encodeReport({ created, spent }));
  }
  expect((await puppets.end()).state).toBe('Completed');
  await admin.delete(plans, 'autopilot');
  const start = new Date(Date.now() - 60_000).toISOString().slice(11, 16);
  const windows = [{ start, length: '4h', timeZone: 'UTC' }];
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { windows }));
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
  const first = (await puppets.signal('second-w1'))?.created;
  // The last upgrade of the other node took an hour. So the other node starts, although it is the second node of the
  // plan.
  await puppets.plan(1, { version: NEXT });
  await puppets.until(async () =>
    expect((await puppets.signal('second-w2'))?.command.version).toBe(NEXT),
  );
  const viewer = await kubeconfigFor('viewer');
  await puppets.says('second-w2', 'Completed');
  await puppets.until(async () => {
    const { stdout } = await runRefit('why', 'second-w1', '--kubeconfig', viewer);
    const said = stdout.join('\n');
    expect(said).toContain('WindowTooShort');
    expect(said).toContain('second-w1 takes about 5 h, and the window closes at');
  });
  expect((await puppets.signal('second-w1'))?.created).toBe(first);
  await admin.patch(upgradePolicies, POLICY, { spec: { windows: null } }, { type: 'merge' });
  await puppets.until(async () =>
    expect((await puppets.signal('second-w1'))?.command.version).toBe(NEXT),
  );
  await puppets.says('second-w1', 'Completed');
  expect((await puppets.end()).state).toBe('Completed');
  expect(await leader.stop('SIGTERM')).toBe(0);
});
