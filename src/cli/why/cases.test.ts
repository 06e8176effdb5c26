/** Shows that each of the ways in which an upgrade stands still is told by `refit why` in one paragraph: what, since when, what ends it. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/builders/policies.ts';
import { HOUR, later, MINUTE, SECOND, T0 } from '../../../test/builders/times.ts';
import { buildLooking, lookAt, recorded, signalled, statusOf } from '../../../test/builders/views.ts';
import type { K0sUpdate, Plan } from '../../api/autopilot/plan.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import type { Node } from '../../kube/types.ts';
import { encodeReport } from '../../signal/report.ts';
import type { LeaderView } from '../status/leader.ts';
import type { Sources } from '../status/sources.ts';
import { paragraphsOf } from './command.ts';

const NOW = T0 + 10 * MINUTE;
const HELD: LeaderView = { state: 'held', holder: 'a', since: later(0) };
const update = buildUpdate({ targets: { workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } } } });

interface Case {
  /** States of w1 and w2 in the plan's status, and the state of the whole. */
  readonly states?: readonly [w1: string, w2: string];
  readonly state?: string;
  readonly description?: string;
  /** What w1 says; nothing where absent. */
  readonly says?: string;
  readonly reason?: string;
  readonly rolledBack?: boolean;
  readonly isGone?: boolean;
  readonly isCordoned?: boolean;
  readonly controls?: Readonly<Record<string, string>>;
  readonly policy?: UpgradePolicySpec;
  readonly sources?: Partial<Sources>;
  readonly leader?: LeaderView;
  /** What the plan says otherwise. */
  readonly update?: Partial<K0sUpdate>;
}

async function whyOf(given: Case, node?: string): Promise<string> {
  const { states = ['SignalPending', 'SignalPending'], state = 'SchedulableWait', says, reason } = given;
  const [w1, w2] = states;
  const status = statusOf(state, [], recorded({ w1, w2 }, later(MINUTE)), given.description);
  const bare = buildPlan({ commands: [{ k0supdate: { ...update, ...given.update } }] }, status);
  const plan: Plan = {
    ...bare,
    metadata: { ...bare.metadata, ...(given.controls ? { annotations: given.controls } : {}) },
  };
  const created = later(MINUTE);
  const report = { created, ...(reason ? { reason } : {}), ...(given.rolledBack ? { rolledBack: true } : {}) };
  const free = buildNode('w1');
  const cordoned: Node = given.isCordoned ? { ...free, spec: { unschedulable: true } } : free;
  const worker =
    says === undefined
      ? cordoned
      : signalled(cordoned, { created, status: says, timestamp: later(2 * MINUTE) }, encodeReport(report));
  const policies = given.policy ? [buildUpgradePolicy('nightly', given.policy)] : [];
  const workers = given.isGone ? [buildNode('w2')] : [worker, buildNode('w2')];
  const plans = await lookAt([plan], [buildControlNode('c1')], workers, NOW, buildLooking(given.sources, policies));
  const [text = ''] = paragraphsOf({ leader: given.leader ?? HELD, plans }, node, NOW);
  return text;
}

const BUDGET = { budget: 'shop/web', pods: ['shop/web-1'], reason: 'it wants 1 of its 1 pods healthy at all times' };
const HOLDS = 'PodDisruptionBudget shop/web holds shop/web-1: it wants 1 of its 1 pods healthy at all times';
const BLOCKED = async (): ReturnType<Sources['drainPreview']> =>
  await Promise.resolve({ evictable: 1, obstacles: [BUDGET], refused: [] });
const FAILED = { states: ['SignalApplyFailed', 'SignalPending'], state: 'ApplyFailed' } as const;
const MOVING = ['SignalSent', 'SignalPending'] as const;
const RETRY =
  'What to do: mend the cause, in the plan too if it lies there, then `refit retry w1`; or delete the plan, and apply it again.';
const UNHASHED = { 'linux-amd64': { url: 'https://example.com/k0s' } };
/** 2026-11-20 is a Friday, and it is ten past eight. */
const CLOSED = { days: ['Friday' as const], start: '22:00', length: '4h', timeZone: 'UTC' };

test.each<[string, Case, readonly string[]]>([
  [
    'a budget, before the node is cordoned',
    { sources: { drainPreview: BLOCKED } },
    [
      `Waiting: w1 cannot be drained: ${HOLDS} (drain-possible, for 9 min); w2 cannot be drained: ${HOLDS}`,
      'This ends when the budget lets its pods go: run more replicas of them, or change it.',
    ],
  ],
  [
    'a budget, while the node is drained',
    {
      states: MOVING,
      says: 'Cordoning',
      isCordoned: true,
      sources: { drain: async () => await Promise.resolve({ left: 2, blockedBy: HOLDS }) },
    },
    [
      `Under way: w1 is at Cordoning, and 2 pods are left on node w1: ${HOLDS} (drain, for 8 min).`,
      'when the budget lets its pods go',
      'Where w1 stays as it is, it has failed at 2026-11-20T09:02:00Z.',
    ],
  ],
  [
    'pods that take their time',
    {
      states: MOVING,
      says: 'Cordoning',
      isCordoned: true,
      sources: { drain: async () => await Promise.resolve({ left: 1 }) },
    },
    [
      'w1 is at Cordoning, and 1 pod is left on node w1 (drain, for 8 min)',
      'This ends when the pods are gone (kubectl get pods -A --field-selector spec.nodeName=w1 shows them);',
    ],
  ],
  [
    'a pod that the policy refuses to evict',
    {
      sources: {
        drainPreview: async () =>
          await Promise.resolve({ evictable: 0, obstacles: [], refused: [{ pod: 'shop/db', reason: 'has data' }] }),
      },
    },
    ['w1 cannot be drained: shop/db has data', 'This ends when those pods are gone, or spec.drain of the policy'],
  ],
  [
    'a node that drains itself',
    { states: MOVING, says: 'Cordoning', sources: { drainDelegation: async () => await Promise.resolve(false) } },
    [
      'Under way: w1 is at Cordoning, which it does itself (for 8 min).',
      'w1 lets no leader cordon and drain: the agent does it, as k0s before 1.35, and its log tells what it waits for.',
    ],
  ],
  [
    'a bad hash',
    {
      ...FAILED,
      says: 'FailedDownload',
      reason: 'sha256 of the download is aa, wanted bb',
      description: 'w1: FailedDownload: sha256 of the download is aa, wanted bb',
    },
    ['Why: w1: FailedDownload: sha256 of the download is aa, wanted bb.', RETRY],
  ],
  [
    'a release that crashes, and is rolled back',
    {
      ...FAILED,
      says: 'Failed',
      reason: 'the new process ended 3 times',
      rolledBack: true,
      description: 'w1: Failed: the new process ended 3 times',
    },
    ['Why: w1: Failed: the new process ended 3 times (its previous version runs again). What to do', RETRY],
  ],
  [
    'a window that is closed',
    { policy: { windows: [CLOSED] } },
    [
      'Waiting: outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-20T22:00:00Z',
      'This ends when the window opens, at 2026-11-20T22:00:00Z.',
    ],
  ],
  [
    'a blackout',
    { policy: { blackouts: [{ from: '2026-11-20', to: '2026-11-21' }] } },
    ['in a blackout of UpgradePolicy nightly', 'This ends when the blackout is over, at 2026-11-22T00:00:00Z.'],
  ],
  [
    'a node that is gone',
    { states: MOVING, isGone: true },
    [
      'Why: w1 disappeared while it was in flight',
      'What to do: once w1 is back, `refit retry w1`; or delete the plan, and apply one without it.',
    ],
  ],
  [
    'a node that is gone, once that is recorded',
    { ...FAILED, isGone: true, description: 'TargetGone: w1 disappeared while it was in flight' },
    [
      'Plan autopilot (id1) has failed',
      'Why: w1 disappeared while it was in flight.',
      'What to do: once w1 is back, `refit retry w1`; or delete the plan, and apply one without it.',
    ],
  ],
  [
    'nobody holds the lease',
    { leader: { state: 'none', since: later(5 * MINUTE) } },
    ['No controller leads: nothing moves until a `refit controller` runs (for 5 min).'],
  ],
  [
    'a leader that did not renew its lease, as far as clocks tell',
    { leader: { state: 'late', holder: 'a', since: later(10 * MINUTE - 20 * SECOND) } },
    [
      'The leading controller was not heard of in time, or clocks differ: another one takes over, if one runs (for 20 s).',
    ],
  ],
  [
    'a leader that is silent',
    { leader: { state: 'silent', holder: 'a', since: later(7 * MINUTE) } },
    ['The leading controller is silent: nothing moves until a `refit controller` runs (for 3 min).'],
  ],
  [
    'somebody paused it a while after the last node moved',
    { controls: { [PAUSE_ANNOTATION]: later(8 * MINUTE) } },
    ['Waiting: the plan is paused: nothing new starts until refit resume (not-paused, for 2 min).'],
  ],
  [
    'somebody paused it, and wrote no moment',
    { controls: { [PAUSE_ANNOTATION]: 'true' } },
    [
      'Plan autopilot (id1) is running for 10 min, paused: 0 of 2',
      'Waiting: the plan is paused: nothing new starts until refit resume (not-paused, for 9 min).',
      'This ends when `refit resume` is given. Next: w1. `refit abort` ends it.',
    ],
  ],
  [
    'its policy is paused',
    { policy: { paused: true } },
    [
      'UpgradePolicy nightly has spec.paused: nothing new starts',
      `This ends when UpgradePolicy nightly is not paused any more (kubectl patch upgradepolicy nightly --type=merge -p '{"spec":{"paused":false}}').`,
    ],
  ],
  [
    'somebody aborted it, and a node has to finish',
    { states: MOVING, says: 'Restart', controls: { [ABORT_ANNOTATION]: 'wrong release' } },
    [
      'Under way: w1 is at Restart (for 8 min).',
      'stopped by order: wrong release; nothing new starts, and what cannot be taken back finishes',
      'those under way come to their end, and the plan with them',
    ],
  ],
  [
    'somebody aborted it, and it is over',
    {
      ...FAILED,
      says: 'Failed',
      reason: 'stopped by order: wrong release',
      controls: { [ABORT_ANNOTATION]: 'wrong release' },
      description: 'Aborted: stopped by order: wrong release',
    },
    [
      'Why: stopped by order: wrong release; w1: Failed: stopped by order: wrong release. What to do: delete the plan, and apply it again.',
    ],
  ],
  [
    'somebody aborted it while nothing was under way: nobody recorded when',
    {
      states: ['SignalCompleted', 'SignalPending'],
      state: 'ApplyFailed',
      controls: { [ABORT_ANNOTATION]: 'wrong release' },
      description: 'Aborted: stopped by order: wrong release',
    },
    ['Plan autopilot (id1) has failed: 1 of 2 targets are done. Why: stopped by order: wrong release. What to do'],
  ],
  [
    'a policy that cannot be read',
    { policy: { soak: '0h' } },
    ['UpgradePolicy nightly: spec.soak must be', 'This ends when UpgradePolicy nightly is corrected.'],
  ],
  [
    'as many nodes are down as may be',
    { policy: { maxUnavailable: 1 }, isCordoned: true, states: ['SignalCompleted', 'SignalPending'] },
    [
      '1 of 2 nodes are not Ready',
      'This ends when one of those nodes is back, or maxUnavailable of the policy is raised.',
    ],
  ],
  [
    'a step whose time is over: it is for the leader to say so',
    { states: MOVING, says: 'Restart', policy: { deadlines: { restart: '1s', ready: '1s' }, soak: '1s' } },
    [
      'The time of w1 was over at 2026-11-20T08:03:04Z (6 min 56 s ago): it has failed once the leader has seen it stand still for that long.',
    ],
  ],
  [
    'a node whose whole time is over: it has not failed, since the leader counts anew with each of its terms',
    { states: MOVING, says: 'Restart', policy: { deadlines: { target: '1m', restart: '2h', ready: '2h' } } },
    [
      'w1 is at Restart',
      'The time of w1 was over at',
      'it has failed once the leader has seen it stand still for that long.',
    ],
  ],
  [
    'what may not be seen',
    { sources: { drainPreview: async () => await Promise.reject(new Error('pods is forbidden')) } },
    ['Next: w1.', 'It cannot be seen whether nodes can be drained: pods is forbidden.'],
  ],
])('%s', async (_name, given, said) => {
  const text = await whyOf(given);
  for (const part of said) expect(text).toContain(part);
});

test.each<[string, Case]>([
  ['a pause', { controls: { [PAUSE_ANNOTATION]: 'true' } }],
  ['a window', { policy: { windows: [CLOSED] } }],
  ['an abort', { states: MOVING, says: 'Restart', controls: { [ABORT_ANNOTATION]: 'wrong release' } }],
  ['a policy that cannot be read', { policy: { soak: '0h' } }],
  [
    'a download that the policy does not allow',
    { policy: { payloads: { requireSha256: true } }, update: { platforms: UNHASHED } },
  ],
])('%s is told of each node that it holds back, not only of the first', async (_name, given) => {
  const [whole, one] = [await whyOf(given), await whyOf(given, 'w2')];
  const [, wait = ''] = /Waiting: (.*?) \(/.exec(whole) ?? [];
  expect(wait).not.toBe('');
  expect(one).toContain(wait);
  expect(one).toContain('This ends when ');
});

test('of a plan that ended well nothing more is told', async () => {
  const text = await whyOf({
    states: ['SignalCompleted', 'SignalCompleted'],
    state: 'Completed',
    leader: { state: 'none' },
  });
  expect(text).toBe('Plan autopilot (id1) is done after 1 min, 9 min ago: 2 of 2 targets are done.');
});

test('hundreds at one point are asked about in part only', async () => {
  const names = Array.from({ length: 100 }, (_, index) => `w${index}`);
  const asked: string[] = [];
  const drain: Sources['drain'] = async (node) => {
    asked.push(node);
    return await Promise.resolve({ left: 1 });
  };
  const targets = { workers: { ...listed(...names), limits: { concurrent: 100 } } };
  const states = Object.fromEntries(names.map((name) => [name, 'SignalSent']));
  const plan = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets }) }] },
    statusOf('SchedulableWait', [], recorded(states, later(MINUTE))),
  );
  const workers = names.map(
    (name): Node => ({
      ...signalled(buildNode(name), { created: later(MINUTE), status: 'Cordoning', timestamp: later(2 * MINUTE) }),
      spec: { unschedulable: true },
    }),
  );
  await lookAt([plan], [], workers, T0 + HOUR, buildLooking({ drain }));
  expect(asked.length).toBe(20);
});
