/**
 * Proves that a failed Plan is rolled back by one write and one run. Any leader may begin that run, but only while the
 * policy allows it.
 */
import { expect, test } from 'vitest';
import { knowledgeOf } from '../../../../test/support/builders/knowledge.ts';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { recorded, statusOf } from '../../../../test/support/builders/views.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import { plans } from '../../../api/autopilot/plan.ts';
import { nodeRollouts } from '../../../api/kinds.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { placeOf } from '../../../engine/contract/node-rollout-place.ts';
import { orderRestart } from '../../../engine/execute/restart.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../../engine/model/controls.ts';
import {
  ROLLS_BACK_ANNOTATION,
  ROLLS_BACK_REASON_ANNOTATION,
} from '../../../engine/model/earlier-versions.ts';
import { viewsOf } from '../../../engine/snapshot/world.ts';
import { annotated, nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { autopilot } from './autopilot-dialect.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const NAMES = ['w1', 'w2'];
const ROLLS_BACK = buildPolicy({ name: 'safe', rollsBackOnFailure: true });
const STOPS = buildPolicy({ name: 'safe' });
const COUNTS = { total: 2, done: 1, failed: 1, inProgress: 0, pending: 0, skipped: 0 };

function scene(
  annotations: Readonly<Record<string, string>> = {},
  earlier: readonly NodeRolloutRun[] = [],
) {
  const api = new MemoryApi();
  const k0supdate = buildUpdate({ version: NEW, targets: { workers: listed(...NAMES) } });
  const states = { w1: 'SignalCompleted', w2: 'SignalApplyFailed' };
  const status = statusOf('ApplyFailed', [], recorded(states));
  const plan = annotated(buildPlan({ commands: [{ k0supdate }] }, status), annotations);
  api.put(plans, { ...plan, metadata: { ...plan.metadata, generation: 1 } });
  for (const name of NAMES) {
    const node = buildNode(name);
    const kubeletVersion = name === 'w1' ? NEW : OLD;
    api.put(nodes, { ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } });
  }
  const place = placeOf(autopilot, plan);
  if (place === undefined) throw new Error('the Plan has no NodeRollout');
  const old = { version: OLD, platform: 'linux-amd64', url: 'https://example.com/old' };
  const run = {
    id: 'id1',
    planUid: 'plan-uid',
    started: later(0),
    ended: later(1000),
    phase: 'failed',
    version: NEW,
    counts: COUNTS,
    before: [{ role: 'worker' as const, version: OLD, nodes: NAMES }],
    downloads: [{ ...old, version: NEW }, old],
  };
  api.put(nodeRollouts, {
    metadata: { name: place.name, namespace: place.namespace },
    spec: { plan: { apiVersion: 'v1', kind: 'Plan', name: 'autopilot', uid: 'plan-uid' } },
    status: { history: [run, ...earlier] },
  });
  const reconcile = async (policy = ROLLS_BACK): Promise<void> => {
    const clock = new FakeClock(T0 + HOUR);
    const leader = buildReconciler(autopilot, api, { policyFor: () => policy, clock });
    leader.catchUp();
    await leader.reconcile('autopilot').catch(() => undefined);
  };
  const isWritten = () =>
    api.read(plans, 'autopilot').metadata.annotations?.[ROLLS_BACK_ANNOTATION];
  const version = (name: string) =>
    decodeSignal(api.read(nodes, name).metadata.annotations)?.command.version;
  return { api, reconcile, isWritten, version };
}

test('a policy that stops writes nothing', async () => {
  const { reconcile, isWritten } = scene();
  await reconcile(STOPS);
  expect(isWritten()).toBeUndefined();
});

test.each([ABORT_ANNOTATION, PAUSE_ANNOTATION])(
  '%s keeps the roll-back from being written',
  async (key) => {
    const { reconcile, isWritten } = scene({ [key]: later(0) });
    await reconcile();
    expect(isWritten()).toBeUndefined();
  },
);

test('one write orders the run; the next leader begins it, unless the policy stops by then or somebody aborts', async () => {
  const { api, reconcile, isWritten, version } = scene();
  await reconcile();
  expect(isWritten()).toBe('plan-uid/id1');
  const writes = () => api.calls.filter((call) => call === 'replace plans/autopilot');
  expect(writes()).toHaveLength(1);
  // This API server does not increase the generation, so the leader has not begun the run yet. The effect is the same
  // as if the leader were killed now.
  expect(version('w1')).toBeUndefined();
  api.change(plans, 'autopilot', (plan) => ({
    ...plan,
    metadata: { ...plan.metadata, generation: 2 },
  }));
  await reconcile(STOPS);
  expect(version('w1')).toBeUndefined();
  api.change(plans, 'autopilot', (plan) => annotated(plan, { [ABORT_ANNOTATION]: 'no' }));
  await reconcile();
  expect(version('w1')).toBeUndefined();
  api.change(plans, 'autopilot', (plan) => {
    const { [ABORT_ANNOTATION]: _abort, ...annotations } = plan.metadata.annotations ?? {};
    return { ...plan, metadata: { ...plan.metadata, annotations } };
  });
  await reconcile();
  expect(version('w1')).toBe(OLD);
  expect(version('w2')).toBeUndefined();
  expect(writes()).toHaveLength(1);
});

test('an edit after a roll-back orders a run that rolls nothing back, unless the edit itself says so', async () => {
  const { api, reconcile, isWritten } = scene();
  await reconcile();
  expect(isWritten()).toBe('plan-uid/id1');
  const effects = { dialect: autopilot, client: api.client, ...knowledgeOf(viewsOf([])) };
  const edited = api.read(plans, 'autopilot');
  const byHand = annotated(edited, { [ROLLS_BACK_ANNOTATION]: 'plan-uid/id0' });
  api.put(plans, byHand);
  expect(await orderRestart(effects, api.read(plans, 'autopilot'))).toBe(true);
  expect(isWritten()).toBe('plan-uid/id0');
  api.put(plans, edited);
  expect(await orderRestart(effects, api.read(plans, 'autopilot'))).toBe(true);
  expect(isWritten()).toBeUndefined();
  expect(api.read(plans, 'autopilot').metadata.annotations).not.toHaveProperty([
    ROLLS_BACK_REASON_ANNOTATION,
  ]);
});

test('a version that was rolled back before is not rolled back again', async () => {
  const base = { planUid: 'plan-uid', started: later(0), ended: later(1), counts: COUNTS };
  const { reconcile, isWritten } = scene({}, [
    { ...base, id: 'id-back', phase: 'done', version: OLD, rollsBack: { run: 'plan-uid/id0' } },
    { ...base, id: 'id0', phase: 'failed', version: NEW },
  ]);
  await reconcile();
  expect(isWritten()).toBeUndefined();
});

test('the leader does not write a Plan that it would refuse itself', async () => {
  const { reconcile, isWritten } = scene();
  const strict = buildPolicy({ name: 'safe', rollsBackOnFailure: true, requireSha256: true });
  await reconcile(strict);
  expect(isWritten()).toBeUndefined();
  await reconcile();
  expect(isWritten()).toBe('plan-uid/id1');
});
