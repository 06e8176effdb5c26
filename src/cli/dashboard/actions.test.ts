/** Shows that each action calls the command of the same name on the right plan, and what the page shows afterwards. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createNode, installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { plans } from '../../api/autopilot/plan.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattlePlans } from '../../api/kinds.ts';
import { LEADER_LEASE } from '../../dialects/autopilot/leader-lease.ts';
import { MODULES } from '../../dialects/modules.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { leases, namespaces } from '../../kube/resources.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { microTime, systemClock } from '../../util/clock.ts';
import type { ReversibleParts } from '../contract/roll-back.ts';
import { carryOut } from './actions.ts';
import { previewText } from './preview.ts';
import type { ActionRequest, ActionResult } from './state.ts';

let kubeconfig: string;
let sessionParts: Omit<ReversibleParts, 'output'>;
let makeTwin: (twin: CattlePlan) => Promise<unknown>;
let leadByK0s: () => Promise<() => Promise<unknown>>;
let act: (request: ActionRequest) => Promise<ActionResult>;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-actions-'));
  const plane = await startSandboxPlane(folder);
  kubeconfig = await plane.kubeconfig('admin');
  const client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  await createNode(client, 'w1', {});
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  await client.create(plans, { ...rest, metadata: { name: metadata.name } });
  const abort = new AbortController().signal;
  sessionParts = { modules: MODULES, clock: systemClock, abort };
  makeTwin = async (twin) => {
    const metadata = { name: twin.metadata.namespace ?? '' };
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
    await client.create(cattlePlans, twin);
  };
  act = async (request) => await carryOut(request, { kubeconfig }, sessionParts);
  leadByK0s = async () => {
    const { name, namespace } = LEADER_LEASE;
    const spec = {
      holderIdentity: '0123456789abcdef0123456789abcdef',
      leaseDurationSeconds: 3600,
      acquireTime: microTime(systemClock.now()),
      renewTime: microTime(systemClock.now()),
    };
    const lease = { metadata: { name, namespace }, spec };
    await client.create(leases, lease);
    return async () => await client.delete(leases, name, { namespace });
  };
  return async () => {
    client[Symbol.dispose]();
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

const plan = 'autopilot//autopilot';

function previewed(text: string) {
  return previewText(text, { kubeconfig }, sessionParts);
}

test('a preview shows the order of a plan that is not applied yet, and that the cluster has one of this name', async () => {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const { metadata, ...rest } = buildPlan({ id: 'id2', commands: [{ k0supdate }] });
  const text = JSON.stringify({ ...rest, metadata: { name: metadata.name } });
  const { lines } = await previewed(text);
  const shown = lines.join('\n');
  expect(shown).toContain('Plan autopilot (id2)  new');
  expect(shown).toContain('the cluster has a plan with this name');
  expect(shown).toMatch(/workers to \S+, 1 at a time\n +batch 1 +w1/);
});

test.each([
  ['', /^REFIT_FILE: the text: is empty or has only comments, expected a Plan of/],
  ['a: [', /^REFIT_FILE: the text: is not YAML: /],
  ['/etc/hostname', /^REFIT_FILE: the text: holds /],
  ['kind: Secret\napiVersion: v1\nmetadata: {name: a}', /^REFIT_FILE: the text: holds .*expected/],
])('a text that is no plan is refused with one sentence: %j', async (text, sentence) => {
  const { isDone, lines } = await previewed(text);
  expect({ isDone, lines }).toEqual({
    isDone: false,
    lines: [expect.stringMatching(sentence) as unknown],
  });
});

test('more than ten plans are refused', async () => {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const plans = Array.from({ length: 11 }, () =>
    JSON.stringify(buildPlan({ commands: [{ k0supdate }] })),
  );
  const { lines } = await previewed(plans.join('\n---\n'));
  expect(lines.join()).toContain('found 11 plans, expected at most 10');
});

test('the key of a plan without a namespace does not name a plan in a namespace with the name of the dialect', async () => {
  const spec = { concurrency: 1, upgrade: { image: 'a' }, version: 'v1.36.3' };
  const twin = {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name: 'autopilot', namespace: 'autopilot' },
    spec,
  };
  await makeTwin(twin);
  const { isDone, lines } = await act({ action: 'pause', plan });
  expect({ isDone, lines }).toMatchObject({
    isDone: true,
    lines: expect.arrayContaining(['Plan autopilot (id1) is paused.']) as unknown,
  });
  const resumed = await act({ action: 'resume', plan });
  expect(resumed.isDone).toBe(true);
});

test("every control begins with what it cannot change while k0s's own leader carries plans out", async () => {
  const end = await leadByK0s();
  const requests: ActionRequest[] = [
    { action: 'pause', plan },
    { action: 'resume', plan },
    { action: 'hold', node: 'w1', reason: '' },
    { action: 'unhold', node: 'w1' },
  ];
  for (const request of requests) {
    const { isDone, lines } = await act(request);
    expect({ isDone, first: lines[0] }).toEqual({
      isDone: true,
      first: expect.stringMatching(
        /^Led by k0s's own leader for .*: it ignores policies, controls/,
      ) as unknown,
    });
  }
  await end();
});

test.each<[ActionRequest, boolean, RegExp]>([
  [{ action: 'pause', plan }, true, /^Plan autopilot \(id1\) is paused\.\n/],
  [{ action: 'resume', plan }, true, /^Plan autopilot \(id1\) continues\.\n/],
  [{ action: 'hold', node: 'w1', reason: 'disk' }, true, /^w1 is held by .*: disk\. No plan/],
  [
    { action: 'hold', node: 'w1' },
    true,
    /^w1 is held by .*finishes\.\nThis replaces the hold by \S+ until refit unhold w1: disk\.$/,
  ],
  [{ action: 'unhold', node: 'w1' }, true, /^w1 is not held any more/],
  [
    { action: 'hold', node: 'autopilot' },
    false,
    /^REFIT_CONTROL: autopilot is a plan, and refit hold takes the name of a node \(refit pause autopilot keeps all/,
  ],
  [
    { action: 'unhold', node: 'Plan/autopilot' },
    false,
    /^REFIT_USAGE: "Plan\/autopilot" is not a node: .*`refit pause` and `refit resume` take the name of a plan/,
  ],
  [
    { action: 'unhold', node: 'autopilot' },
    false,
    /^REFIT_CONTROL: autopilot is a plan, and refit unhold takes the name of a node \(refit resume autopilot lets/,
  ],
  [{ action: 'hold', node: 'w9' }, false, /^REFIT_CONTROL: there is no Node or ControlNode w9/],
  [{ action: 'retry', plan, node: 'w1' }, false, /^REFIT_CONTROL: w1 of Plan .* has not failed/],
  [{ action: 'approve', plan, wave: 2 }, false, /^REFIT_CONTROL: the plan has no waves/],
  [{ action: 'pause', plan: 'cattle/a/b' }, false, /^REFIT_CONTROL: there is no plan cattle\/a\/b/],
  [
    { action: 'abort', plan, reason: 'wrong', isConfirmed: true },
    true,
    /^Plan autopilot \(id1\) is aborted: wrong\.\n/,
  ],
])('the answer to the action %j', async (request, isDone, text) => {
  const result = await act(request);
  expect({ isDone: result.isDone, text: result.lines.join('\n') }).toEqual({
    isDone,
    text: expect.stringMatching(text) as unknown,
  });
});
