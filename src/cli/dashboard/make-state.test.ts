/**
 * Shows which buttons the state offers: for the wave that waits for an approval, for a paused plan, and for held nodes.
 * It also shows who paused the plan, which nodes wait, and which labels the nodes have.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildViewParts, lookAt, recorded } from '../../../test/support/builders/views.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import { HOLD_ANNOTATION, writeHold } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { runsOf, stateOf } from './make-state.ts';
import type { NodeState, PagePlan } from './state.ts';

const NOW = T0 + MINUTE;

interface Situation {
  readonly rollouts?: readonly NodeRollout[];
  readonly policies?: readonly UpgradePolicy[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly status?: Plan['status'];
  /** The labels of w1. */
  readonly zone?: Readonly<Record<string, string>>;
  /** False if nobody holds w2. */
  readonly isHeld?: boolean;
}

async function shown({
  policies = [],
  annotations = {},
  zone = {},
  rollouts = [],
  status: recordedStatus,
  isHeld = true,
}: Situation): Promise<PagePlan> {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const plan = buildPlan({ commands: [{ k0supdate }] });
  const metadata = { ...plan.metadata, annotations };
  const controlled: Plan = { ...plan, metadata, ...defined({ status: recordedStatus }) };
  const held = buildNode('w2');
  const hold = { [HOLD_ANNOTATION]: writeHold({ by: 'ada', since: rfc3339(T0) }) };
  const nodes = [
    buildNode('w1', { labels: zone }),
    isHeld ? { ...held, metadata: { ...held.metadata, annotations: hold } } : held,
  ];
  const plans = await lookAt([controlled], [], nodes, NOW, buildViewParts({}, policies));
  const status = { leader: { state: 'unknown' as const }, plans };
  const [state] = stateOf({ status, rollouts, missing: [] }, NOW).plans;
  if (state === undefined) throw new Error('the plan is not shown');
  return state;
}

test('the wave that waits for an approval is named', async () => {
  const waves = [{ approval: 'Manual' as const }];
  expect(await shown({ policies: [buildUpgradePolicy('careful', { waves })] })).toMatchObject({
    unapproved: 1,
  });
  expect((await shown({})).unapproved).toBeUndefined();
});

test('each node has its wave and its zone', async () => {
  const zone = { 'topology.kubernetes.io/zone': 'zone-a' };
  const waves = [{ count: 1 }];
  const { nodes } = await shown({ policies: [buildUpgradePolicy('careful', { waves })], zone });
  expect(nodes.map((node) => node.wave ?? 0).toSorted((a, b) => a - b)).toEqual([1, 2]);
  expect(nodes.map((node) => [node.name, node.zone])).toEqual([
    ['w1', 'zone-a'],
    ['w2', undefined],
  ]);
  expect((await shown({})).nodes.map((node) => [node.wave, node.zone])).toEqual([
    [undefined, undefined],
    [undefined, undefined],
  ]);
});

test('a pause by an annotation can be ended with a button, a pause by the policy cannot', async () => {
  expect((await shown({})).paused).toBeUndefined();
  const annotations = { [PAUSE_ANNOTATION]: 'true' };
  expect(await shown({ annotations })).toMatchObject({ paused: 'plan' });
  const policies = [buildUpgradePolicy('nightly', { paused: true })];
  expect(await shown({ policies })).toMatchObject({ paused: 'policy' });
});

/** Returns which of the signs of a wait a node has. */
function signsOf({ waits, stuck, unanswered }: NodeState): object {
  return defined({ waits, stuck, unanswered });
}

test('a node that waits for its turn or is held does not count as waiting, one that waits for an approval does', async () => {
  expect((await shown({})).nodes.map(signsOf)).toEqual([{}, {}]);
  const waves = [{ approval: 'Manual' as const }];
  const { nodes } = await shown({ policies: [buildUpgradePolicy('careful', { waves })] });
  expect(nodes.map(signsOf)[0]).toEqual({ waits: true });
});

/** Returns what the status shows of a plan with the workers w1 and w2. */
async function lookAtTwo(): Promise<ShownPlan[]> {
  const k0supdate = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const nodes = [buildNode('w1'), buildNode('w2')];
  return await lookAt([buildPlan({ commands: [{ k0supdate }] })], [], nodes, NOW);
}

const NO_LEADER = { leader: { state: 'unknown' as const } };

test.each([
  { ago: MINUTE / 2, name: 'for half a minute waits', signs: { waits: true, unanswered: true } },
  {
    ago: 2 * MINUTE,
    name: 'for two minutes is stuck',
    signs: { waits: true, stuck: true, unanswered: true },
  },
])('a node whose agent has not answered $name', async ({ ago, signs }) => {
  const since = rfc3339(NOW - ago);
  const plans = (await lookAtTwo()).map(
    (plan): ShownPlan => ({
      ...plan,
      stages: plan.stages.map((stage) => ({
        ...stage,
        targets: stage.targets.map((target) => ({ ...target, phase: 'signalled', since })),
      })),
    }),
  );
  const status = { ...NO_LEADER, plans };
  const [plan] = stateOf({ status, rollouts: [], missing: [] }, NOW).plans;
  expect(plan?.nodes.map(signsOf)).toEqual([signs, signs]);
});

test('the state has each label of a Node once, without the labels that repeat its name', async () => {
  const seen = {
    status: { ...NO_LEADER, plans: await lookAtTwo() },
    rollouts: [],
    missing: [],
  };
  const labelsOf = (name: string): Record<string, string> => ({
    'kubernetes.io/hostname': name,
    'beta.kubernetes.io/os': 'linux',
    disk: 'ssd',
    ...(name === 'w2' ? { pool: 'b' } : {}),
  });
  const { labels, plans } = stateOf({ ...seen, labelsOf }, NOW);
  expect(labels).toEqual(['disk=ssd', 'pool=b']);
  expect(plans[0]?.nodes.map((node) => [node.name, node.labels])).toEqual([
    ['w1', [0]],
    ['w2', [0, 1]],
  ]);
  expect(stateOf(seen, NOW)).not.toHaveProperty('labels');
});

const HELD = 'w2 is held by ada (ends with refit unhold w2)';

test('a held node says who holds it, also when the plan was aborted', async () => {
  const annotations = { [ABORT_ANNOTATION]: 'wrong release' };
  for (const situation of [{}, { annotations }]) {
    const { nodes } = await shown(situation);
    expect(nodes.map(({ name, hold }) => [name, hold])).toEqual([
      ['w1', undefined],
      ['w2', HELD],
    ]);
  }
});

test('a node that has not started says why, as `refit why NODE` does', async () => {
  const reasons = async (situation: Situation): Promise<string[]> =>
    (await shown(situation)).nodes.map(({ message }) => message);
  expect(await reasons({})).toEqual(['it is among the next to start', HELD]);
  const waves = [{ approval: 'Manual' as const }];
  const policies = [buildUpgradePolicy('careful', { waves })];
  expect(await reasons({ policies })).toEqual([
    expect.stringContaining('wave 1 needs approval by UpgradePolicy careful'),
    HELD,
  ]);
});

test('the chief line of a plan says what keeps it or a node from going on, and else what happens', async () => {
  expect((await shown({})).chief).toBe(HELD);
  const waves = [{ approval: 'Manual' as const }];
  const policies = [buildUpgradePolicy('careful', { waves })];
  expect((await shown({ policies })).chief).toContain('wave 1 needs approval');
  const annotations = { [PAUSE_ANNOTATION]: 'true' };
  expect((await shown({ annotations })).chief).toContain('the plan is paused');
});

test('the chief line is about a node that failed rather than about one that people hold', async () => {
  const state = 'SchedulableWait';
  const workers = recorded({ w1: 'SignalApplyFailed', w2: 'SignalPending' });
  const status = { state, commands: [{ id: 0, state, k0supdate: { workers } }] };
  const policies = [buildUpgradePolicy('careful', { failureBudget: 1 })];
  const { chief, why } = await shown({ status, policies });
  expect(chief).toMatch(/^w1 failed/);
  expect(why.find(({ heading }) => heading === 'held')?.lines).toEqual([HELD]);
});

test('the times of the run are those that `refit history` shows', async () => {
  const { metadata, spec } = buildPlan();
  const counts = { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
  const started = rfc3339(T0 - 7 * MINUTE);
  const ended = rfc3339(T0 - MINUTE);
  const rolloutOf = (of: { readonly planUid?: string }): NodeRollout => ({
    metadata: { name: 'autopilot', labels: { [DIALECT_LABEL]: 'autopilot' } },
    spec: {
      plan: { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan', name: 'autopilot' },
    },
    status: {
      phase: 'done',
      history: [
        {
          id: spec.id ?? '',
          started,
          ended,
          phase: 'done',
          counts,
          ...of,
        },
      ],
    },
  });
  expect(await shown({ rollouts: [rolloutOf({ planUid: metadata.uid ?? '' })] })).toMatchObject({
    started,
    ended,
  });
  expect(await shown({ rollouts: [rolloutOf({})] })).toMatchObject({ started, ended });
  const ofEarlierPlan = await shown({
    rollouts: [rolloutOf({ planUid: 'that of an earlier plan' })],
  });
  expect(ofEarlierPlan.started).not.toBe(started);
});

const IN_MINUTES = (minutes: number): string => rfc3339(NOW + minutes * MINUTE);

test.each([
  ['a range', 4, 9, ['4 min to 9 min left'], true],
  ['a range that has begun', -1, 2, ['less than 2 min left'], true],
  ['a range that nobody has renewed', -9, -1, [], false],
])(
  '%s of the end of a plan is the only estimate that the page shows',
  async (_name, from, to, progress, isShown) => {
    const eta = { at: IN_MINUTES(to), earliest: IN_MINUTES(from), latest: IN_MINUTES(to) };
    const plan = await shown({
      isHeld: false,
      rollouts: [
        {
          metadata: { name: 'autopilot', labels: { [DIALECT_LABEL]: 'autopilot' } },
          spec: {
            plan: {
              apiVersion: 'autopilot.k0sproject.io/v1beta2',
              kind: 'Plan',
              name: 'autopilot',
            },
          },
          status: { phase: 'running', eta },
        },
      ],
    });
    expect(plan.progress).toEqual(progress);
    expect(plan.expected !== undefined).toBe(isShown);
  },
);

test('a cause that the message of a run tells is not told again', () => {
  const counts = { total: 2, done: 0, failed: 1, inProgress: 0, pending: 1, skipped: 0 };
  const failures = [{ node: 'w1', message: 'FailedDownload: no space left' }];
  const message = 'w1: FailedDownload: no space left';
  const run = { id: 'a', started: rfc3339(T0), phase: 'failed', counts, message, failures };
  const [{ causes } = {}] = runsOf({ dialect: 'd', kind: 'Plan', name: 'a', runs: [run] });
  expect(causes).toEqual([message]);
});

test('nodes that failed for the same cause share a line in the history of the dashboard and of the report', () => {
  const counts = { total: 5, done: 0, failed: 4, inProgress: 0, pending: 1, skipped: 0 };
  const failures = [
    { node: 'w1', message: 'w1: FailedDownload: no space left' },
    { node: 'w2', message: 'w2: FailedDownload: no space left' },
    { node: 'w3' },
  ];
  const run = {
    id: 'a',
    started: rfc3339(T0),
    phase: 'failed',
    counts,
    message: 'the failure budget is used up',
    reason: 'FailureBudgetExceeded',
    failures,
  };
  const [{ causes } = {}] = runsOf({ dialect: 'd', kind: 'Plan', name: 'a', runs: [run] });
  expect(causes).toEqual([
    'the failure budget is used up (FailureBudgetExceeded)',
    'w1, w2 failed: FailedDownload: no space left',
    'w3 failed',
    '1 more node failed',
  ]);
});
