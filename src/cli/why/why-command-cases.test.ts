/** Shows what `refit why` prints for each reason why an upgrade waits: the reason, since when, and what ends the wait. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { HOUR, later, MINUTE, SECOND, T0 } from '../../../test/support/clock/times.ts';
import type { K0sUpdate, Plan } from '../../api/autopilot/plan.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import type { Node } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { mediumOf } from '../output.ts';
import type { Sources } from '../status/inspection-sources.ts';
import type { LeaderView } from '../status/load.ts';
import { whyLines } from './why-command.ts';

const NOW = T0 + 10 * MINUTE;
const HELD: LeaderView = { state: 'held', holder: 'a', since: later(0) };
const update = buildUpdate({
  targets: { workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } } },
});

const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

interface Case {
  /** States of w1 and w2 in the status of the plan, and the state of the plan. */
  readonly states?: readonly [w1: string, w2: string];
  readonly state?: string;
  readonly description?: string;
  /** The report of w1; absent if w1 reports nothing. */
  readonly says?: string;
  readonly reason?: string;
  readonly rolledBack?: boolean;
  readonly isGone?: boolean;
  readonly isCordoned?: boolean;
  readonly controls?: Readonly<Record<string, string>>;
  readonly policy?: UpgradePolicySpec;
  readonly sources?: Partial<Sources>;
  readonly leader?: LeaderView;
  /** Other fields of the plan. */
  readonly update?: Partial<K0sUpdate>;
}

async function whyOf(given: Case, node?: string): Promise<string> {
  const {
    states = ['SignalPending', 'SignalPending'],
    state = 'SchedulableWait',
    says,
    reason,
  } = given;
  const [w1, w2] = states;
  const status = statusOf(state, [], recorded({ w1, w2 }, later(MINUTE)), given.description);
  const bare = buildPlan({ commands: [{ k0supdate: { ...update, ...given.update } }] }, status);
  const plan: Plan = {
    ...bare,
    metadata: { ...bare.metadata, ...(given.controls ? { annotations: given.controls } : {}) },
  };
  const created = later(MINUTE);
  const report = {
    created,
    ...(reason ? { reason } : {}),
    ...(given.rolledBack ? { rolledBack: true } : {}),
  };
  const free = buildNode('w1');
  const cordoned: Node = given.isCordoned ? { ...free, spec: { unschedulable: true } } : free;
  const worker =
    says === undefined
      ? cordoned
      : signalled(
          cordoned,
          { created, status: says, timestamp: later(2 * MINUTE) },
          encodeReport(report),
        );
  const policies = given.policy ? [buildUpgradePolicy('nightly', given.policy)] : [];
  const workers = given.isGone ? [buildNode('w2')] : [worker, buildNode('w2')];
  const plans = await lookAt(
    [plan],
    [buildControlNode('c1')],
    workers,
    NOW,
    buildViewParts(given.sources, policies),
  );
  return whyLines({ leader: given.leader ?? HELD, plans }, node, NOW, PIPE).join('\n');
}

const BUDGET = {
  budget: 'shop/web',
  pods: ['shop/web-1'],
  reason: 'it wants 1 of its 1 pods healthy at all times',
};
const HOLDS =
  'PodDisruptionBudget shop/web blocks shop/web-1: it wants 1 of its 1 pods healthy at all times';
const BLOCKED = async (): ReturnType<Sources['drainPreview']> =>
  await Promise.resolve({ evictable: 1, obstacles: [BUDGET], refused: [] });
const FAILED = { states: ['SignalApplyFailed', 'SignalPending'], state: 'ApplyFailed' } as const;
const MOVING = ['SignalSent', 'SignalPending'] as const;
const RETRY =
  '\n  to do   Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run: refit retry w1';
const UNHASHED = { 'linux-amd64': { url: 'https://example.com/k0s' } };
/** The clock of the test is at 08:10 on Friday, 2026-11-20, so this window is closed. */
const CLOSED = { days: ['Friday' as const], start: '22:00', length: '4h', timeZone: 'UTC' };

test.each<[string, Case, readonly string[]]>([
  [
    'a budget that may block the drain, before the node is cordoned: a warning with the deadline',
    { sources: { drainPreview: BLOCKED } },
    [
      `\n  warning the drain of w1 may not end: ${HOLDS}. Refit cordons the node, and asks for the evictions for at most 1 h (\`deadlines.drain\`), because an operator may change the budget. After that, Refit uncordons the node, and the plan stops\n`,
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
      `\n  now     w1 Cordoning (8 min): 2 pods are left on node w1: ${HOLDS} (DrainBlocked)\n`,
      'when the budget allows the eviction',
      '\n  limit   w1 fails at 2026-11-20T09:02:00Z if this step has not ended by then\n',
    ],
  ],
  [
    'a new version that crashes again and again',
    {
      states: MOVING,
      says: 'Restart',
      reason: 'crash loop: the process of v2 ended 3 times in 7 s, last with exit code 1',
    },
    [
      'w1 Restart (8 min): crash loop: the process of v2 ended 3 times in 7 s, last with exit code 1',
    ],
  ],
  [
    'pods that take their time',
    {
      states: MOVING,
      says: 'Cordoning',
      isCordoned: true,
      sources: { drain: async () => await Promise.resolve({ left: 1, pods: ['default/db-0'] }) },
    },
    [
      'w1 Cordoning (8 min): 1 pod is left on node w1 (default/db-0) (Draining)',
      'ends    when the pods are gone (kubectl get pods -A --field-selector spec.nodeName=w1 shows them)\n',
    ],
  ],
  [
    'a pod that the policy refuses to evict',
    {
      sources: {
        drainPreview: async () =>
          await Promise.resolve({
            evictable: 0,
            obstacles: [],
            refused: [
              {
                pod: 'shop/db',
                reason: 'has data in an emptyDir volume, which would be lost' as const,
              },
            ],
          }),
      },
    },
    [
      'w1 cannot be drained: shop/db has data in an emptyDir volume, which would be lost; spec.drain.deleteEmptyDirData: true of an UpgradePolicy allows this',
      'ends    when those pods are gone, or an UpgradePolicy has spec.drain.deleteEmptyDirData: true',
    ],
  ],
  [
    'a node that drains itself',
    {
      states: MOVING,
      says: 'Cordoning',
      sources: { drainDelegation: async () => await Promise.resolve(false) },
    },
    [
      '\n  now     w1 Cordoning (8 min): its agent cordons and drains the node (see the log of the agent)\n',
    ],
  ],
  [
    'a node at the step of its drain, where the policy disables drains',
    {
      states: MOVING,
      says: 'Cordoning',
      policy: { drain: { enabled: false } },
      sources: { drainDelegation: async () => await Promise.resolve(false) },
    },
    ['\n  now     w1 Cordoning (8 min)\n'],
  ],
  [
    'a bad hash',
    {
      ...FAILED,
      says: 'FailedDownload',
      reason: 'sha256 of the download is aa, wanted bb',
      description: 'w1: FailedDownload: sha256 of the download is aa, wanted bb',
    },
    [
      '\n  why     w1 failed (8 min): FailedDownload: sha256 of the download is aa, wanted bb\n',
      RETRY,
    ],
  ],
  [
    'a release that crashes, and is rolled back',
    {
      ...FAILED,
      says: 'Failed',
      reason: 'the new process ended 3 times',
      rolledBack: true,
      description: 'w1: the new process ended 3 times',
    },
    [
      '\n  why     w1 failed (8 min): the new process ended 3 times (its previous version runs again)\n',
      RETRY,
    ],
  ],
  [
    'a plan that went on within its failure budget, and is over',
    {
      states: ['SignalApplyFailed', 'SignalCompleted'],
      state: 'ApplyFailed',
      says: 'Failed',
      reason: 'the new process ended 3 times',
      description: 'DoneWithFailures: 1 of 2 targets done; failed: w1',
    },
    [
      'Plan autopilot (id1)  failed 1/2 after ',
      '\n  why     1 of 2 targets done; failed: w1\n          w1 failed (8 min): the new process ended 3 times\n',
      RETRY,
    ],
  ],
  [
    'a window that is closed',
    { policy: { windows: [CLOSED] } },
    [
      '\n  waits   outside of the maintenance windows of UpgradePolicy nightly: nothing starts before 2026-11-20T22:00:00Z',
      '\n  ends    when the window opens, at 2026-11-20T22:00:00Z\n',
    ],
  ],
  [
    'a blackout',
    { policy: { blackouts: [{ from: '2026-11-20', to: '2026-11-21' }] } },
    ['UpgradePolicy nightly', 'ends    when the blackout is over, at 2026-11-22T00:00:00Z\n'],
  ],
  [
    'a node that is gone',
    { states: MOVING, isGone: true },
    [
      '\n  why     w1 disappeared during its attempt\n          w1 failed (9 min): there is no such node\n',
      '\n  to do   Failed. When w1 is back, run: refit retry w1. Or delete the Plan and apply one without the missing nodes.',
    ],
  ],
  [
    'a node that is gone, once that is recorded',
    { ...FAILED, isGone: true, description: 'TargetGone: w1 disappeared during its attempt' },
    [
      'Plan autopilot (id1)  failed 0/2 after 1 min, 9 min ago',
      '\n  why     w1 disappeared during its attempt\n          w1 failed (9 min): there is no such node\n',
      '\n  to do   Failed. When w1 is back, run: refit retry w1. Or delete the Plan and apply one without the missing nodes.',
    ],
  ],
  [
    'nobody holds the lease',
    { leader: { state: 'none', since: later(5 * MINUTE) } },
    [
      'for 9 min  to v1.36.3+k0s.2\n  why     No leader for 5 min: no refit controller holds lease k0s-autopilot/k0s-autopilot-controller. No new node starts until one runs.\n  ends    when a refit controller runs and acquires the lease\n  then    1 worker queued (1 at a time) (9 min)\n  ends    when w1, which starts first, is done\n  next    w1\n',
    ],
  ],
  [
    'nobody holds the lease, and a node is at work: no deadline counts',
    {
      states: MOVING,
      says: 'Restart',
      leader: { state: 'silent', holder: 'a', since: later(7 * MINUTE) },
    },
    [
      '\n  why     No renewal by leader a for 3 min: no new node starts until a refit controller runs.\n  ends    when a refit controller runs and acquires the lease\n  now     w1 Restart (8 min)\n  then    1 worker queued',
    ],
  ],
  [
    'a leader that did not renew its lease, as far as clocks tell',
    { leader: { state: 'late', holder: 'a', since: later(10 * MINUTE - 20 * SECOND) } },
    [
      'No renewal by leader a for 20 s: another refit controller takes over in a few seconds, if one runs. If nothing changes, check that the clocks of this machine and of the controllers agree.',
    ],
  ],
  [
    'a leader that is silent',
    { leader: { state: 'silent', holder: 'a', since: later(7 * MINUTE) } },
    ['No renewal by leader a for 3 min: no new node starts until a refit controller runs.'],
  ],
  [
    'somebody paused it a while after the last node moved',
    { controls: { [PAUSE_ANNOTATION]: later(8 * MINUTE) } },
    ['waits   the plan is paused: nothing new starts until it is resumed (Paused, 2 min)\n'],
  ],
  [
    'somebody paused it, and wrote no moment',
    { controls: { [PAUSE_ANNOTATION]: 'true' } },
    [
      'Plan autopilot (id1)  running 0/2 for 9 min, paused',
      'waits   the plan is paused: nothing new starts until it is resumed (Paused, 9 min)\n',
      'ends    when the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)\n  next    w1\n  you can refit resume, refit abort',
    ],
  ],
  [
    'its policy is paused',
    { policy: { paused: true } },
    [
      'UpgradePolicy nightly has spec.paused: nothing new starts',
      `ends    when UpgradePolicy nightly is no longer paused (kubectl patch upgradepolicy nightly --type=merge -p '{"spec":{"paused":false}}')\n`,
    ],
  ],
  [
    'somebody aborted it, and a node has to finish',
    { states: MOVING, says: 'Restart', controls: { [ABORT_ANNOTATION]: 'wrong release' } },
    [
      'now     w1 Restart (8 min)\n',
      'the plan was aborted: wrong release; nothing new starts; the leader stops the work where it still can, and the other nodes in progress finish',
      'the nodes in progress have finished; then the plan ends',
    ],
  ],
  [
    'somebody aborted it, and it is over',
    {
      ...FAILED,
      says: 'Failed',
      reason: 'the plan was aborted: wrong release',
      controls: { [ABORT_ANNOTATION]: 'wrong release' },
      description: 'Aborted: the plan was aborted: wrong release',
    },
    [
      'why     the plan was aborted: wrong release\n          w1 failed (8 min): the plan was aborted: wrong release\n  to do   Aborted. To start again: delete the Plan and apply it again.',
    ],
  ],
  [
    'somebody aborted it while nothing was under way: nobody recorded when',
    {
      states: ['SignalCompleted', 'SignalPending'],
      state: 'ApplyFailed',
      controls: { [ABORT_ANNOTATION]: 'wrong release' },
      description: 'Aborted: the plan was aborted: wrong release',
    },
    [
      'Plan autopilot (id1)  failed 1/2  to ',
      '\n  why     the plan was aborted: wrong release\n  to do   Aborted.',
    ],
  ],
  [
    'a policy that cannot be read',
    { policy: { soak: '9000h' } },
    [
      'UpgradePolicy nightly: spec.soak must be',
      'ends    when UpgradePolicy nightly is corrected\n',
    ],
  ],
  [
    'as many nodes are down as may be',
    {
      policy: { maxUnavailable: 1 },
      isCordoned: true,
      states: ['SignalCompleted', 'SignalPending'],
    },
    [
      '1 of 2 nodes is not Ready',
      'ends    when one of those nodes is available again (only cordoned: kubectl uncordon w1), or maxUnavailable of the UpgradePolicy is raised\n',
    ],
  ],
  [
    'a step whose time is over: it is for the leader to say so',
    {
      states: MOVING,
      says: 'Restart',
      policy: { deadlines: { restart: '1s', ready: '1s' }, soak: '1s' },
    },
    [
      'limit   w1 fails soon: its deadline 2026-11-20T08:03:04Z passed 6 min 56 s ago. After a change of leader it can take longer, because the new leader counts from its own start\n',
    ],
  ],
  [
    'a node whose whole time is over: it has not failed, since the leader counts anew with each of its terms',
    {
      states: MOVING,
      says: 'Restart',
      policy: { deadlines: { target: '1m', restart: '2h', ready: '2h' } },
    },
    [
      'now     w1 Restart (8 min)\n',
      'limit   w1 fails soon: its deadline 2026-11-20T08:02:00Z passed 8 min ago. After a change of leader it can take longer, because the new leader counts from its own start\n',
    ],
  ],
  [
    'what may not be seen',
    { sources: { drainPreview: async () => await Promise.reject(new Error('pods is forbidden')) } },
    ['\n  next    w1\n', '\n  unknown whether nodes can be drained: pods is forbidden\n'],
  ],
])('why explains %s', async (_name, given, said) => {
  const text = await whyOf(given);
  for (const part of said) expect(text).toContain(part);
});

test.each<[string, Case]>([
  ['a pause', { controls: { [PAUSE_ANNOTATION]: 'true' } }],
  ['a window', { policy: { windows: [CLOSED] } }],
  [
    'an abort',
    { states: MOVING, says: 'Restart', controls: { [ABORT_ANNOTATION]: 'wrong release' } },
  ],
  ['a policy that cannot be read', { policy: { soak: '9000h' } }],
  [
    'a download that the policy does not allow',
    { policy: { payloads: { requireSha256: true } }, update: { platforms: UNHASHED } },
  ],
])('%s is told of each node that it holds back, not only of the first', async (_name, given) => {
  const whole = await whyOf(given);
  const one = await whyOf(given, 'w2');
  const [, wait = ''] = /waits {3}(.*?) \(/.exec(whole) ?? [];
  expect(wait).not.toBe('');
  expect(one).toContain(wait);
  expect(one).toContain('\n  ends    when ');
});

test('why tells nothing more about a plan that ended well', async () => {
  const text = await whyOf({
    states: ['SignalCompleted', 'SignalCompleted'],
    state: 'Completed',
    leader: { state: 'none' },
  });
  expect(text).toBe('Plan autopilot (id1)  done 2/2 after 1 min, 9 min ago  to v1.36.3+k0s.2');
});

test('of hundreds of nodes at one step why asks about a part only', async () => {
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
      ...signalled(buildNode(name), {
        created: later(MINUTE),
        status: 'Cordoning',
        timestamp: later(2 * MINUTE),
      }),
      spec: { unschedulable: true },
    }),
  );
  await lookAt([plan], [], workers, T0 + HOUR, buildViewParts({ drain }));
  expect(asked.length).toBe(20);
});

const LATE = {
  states: ['SignalApplyFailed', 'SignalApplyFailed'],
  state: 'ApplyFailed',
  says: 'Restart',
} as const;

test.each<[string, string, Case, string]>([
  [
    'missed its deadline: the reason of the plan',
    'w1',
    { ...LATE, description: 'DeadlineExceeded: w1 did not report within its deadline at Restart' },
    '\n  why     w1 failed at Restart (9 min): did not report within its deadline at Restart\n  to do ',
  ],
  [
    'failed after another one: where its reason is',
    'w1',
    { ...LATE, description: 'DeadlineExceeded: w2 did not report within its deadline at Restart' },
    '\n  why     w1 failed at Restart (9 min): the reason is not recorded; Events may have it: kubectl get events -A --field-selector involvedObject.name=w1\n  to do ',
  ],
  [
    'waits for nothing but the end of the plan',
    'w2',
    { states: MOVING, says: 'Restart', controls: { [ABORT_ANNOTATION]: 'wrong release' } },
    '\n  ends    when the nodes in progress have finished; then the plan ends',
  ],
])('a node that %s', async (_name, node, given, end) => {
  const text = await whyOf(given, node);
  expect(text).toContain(end);
  expect(text).not.toContain('other nodes start before it');
});
