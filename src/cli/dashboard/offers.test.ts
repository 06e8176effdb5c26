/** Shows for which plans the page offers to open a window, to accept a check, to retry left-out nodes, and to go back. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { autopilotModule } from '../../dialects/autopilot/module.ts';
import { kubeadmModule } from '../../dialects/kubeadm/module.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { DialectModule } from '../contract/dialect-module.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { type Offers, offersOf } from './offers.ts';

const NOW = T0 + MINUTE;
/** T0 is a Friday, 08:00 UTC, so this window is closed until Saturday. */
const SHUT: UpgradePolicySpec = {
  windows: [{ days: ['Saturday'], start: '02:00', length: '3h', timeZone: 'UTC' }],
};
const WINTER: UpgradePolicySpec = { blackouts: [{ from: '2026-11-01', to: '2026-11-30' }] };
const OPEN = { state: 'SchedulableWait', w1: 'SignalPending', w2: 'SignalPending' };
const DONE = { state: 'Completed', w1: 'SignalCompleted', w2: 'SignalCompleted' };

interface Situation {
  readonly spec?: UpgradePolicySpec;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly states?: typeof OPEN;
}

async function planIn({ spec = {}, annotations = {}, states = OPEN }: Situation) {
  const { state, ...workers } = states;
  const k0supdate = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const bare = buildPlan({ commands: [{ k0supdate }] }, statusOf(state, [], recorded(workers)));
  const plan = { ...bare, metadata: { ...bare.metadata, annotations } };
  const parts = buildViewParts({}, [buildUpgradePolicy('careful', spec)]);
  const [shown] = await lookAt([plan], [], [buildNode('w1'), buildNode('w2')], NOW, parts);
  if (shown === undefined) throw new Error('the plan is not shown');
  return shown;
}

function rolloutOf(plan: ShownPlan, spec: object = {}, run: Partial<NodeRolloutRun> = {}) {
  const counts = { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
  const times = { started: rfc3339(T0), ended: rfc3339(NOW) };
  return {
    metadata: { name: 'autopilot' },
    spec: { plan: { apiVersion: 'a/v1', kind: 'Plan', name: 'autopilot' }, ...spec },
    status: {
      history: [{ id: plan.id, planUid: plan.uid ?? '', phase: 'done', counts, ...times, ...run }],
    },
  } as NodeRollout;
}

/** Returns what the page offers for a plan that goes back as plans of k0s do, unless another module is given. */
function offered(
  plan: ShownPlan,
  rollout?: NodeRollout,
  { rollBack: way }: Pick<DialectModule, 'rollBack'> = autopilotModule,
): Offers {
  return offersOf(plan, { rollout, way }, NOW);
}

test.each<[string, Situation, Offers['closed']]>([
  ['a closed window', { spec: SHUT }, 'window'],
  ['a blackout', { spec: WINTER }, 'blackout'],
  ['a closed window during a blackout', { spec: { ...SHUT, ...WINTER } }, 'blackout'],
  ['no window', {}, undefined],
  [
    'a paused plan, whose window no opening would help',
    { spec: SHUT, annotations: { [PAUSE_ANNOTATION]: 'true' } },
    undefined,
  ],
  ['an aborted plan', { spec: SHUT, annotations: { [ABORT_ANNOTATION]: 'wrong' } }, undefined],
  ['an ended plan', { spec: SHUT, states: DONE }, undefined],
])(
  'the opening of a window is offered for %s only if it helps',
  async (_name, situation, closed) => {
    expect(offered(await planIn(situation)).closed).toBe(closed);
  },
);

test('the acceptance of a check is offered while the check fails and nobody has accepted it in this run', async () => {
  const plan: ShownPlan = {
    ...(await planIn({})),
    checks: [
      { name: 'errors', state: 'Failing' },
      { name: 'latency', state: 'Passing' },
      { name: 'disk', state: 'Unknown' },
    ],
  };
  const checksOf = (accepted: readonly object[]) =>
    offered(plan, rolloutOf(plan, { accepted })).acceptable;
  const decision = { check: 'errors', by: 'ada', run: `${plan.uid}/${plan.id}` };
  expect(checksOf([])).toEqual(['errors']);
  expect(checksOf([decision])).toBeUndefined();
  expect(checksOf([{ ...decision, run: `${decision.run}/7` }])).toBeUndefined();
  expect(checksOf([{ ...decision, run: 'another/run' }])).toEqual(['errors']);
  expect(checksOf([{ ...decision, until: rfc3339(T0) }])).toEqual(['errors']);
  // Without a NodeRollout, the decision could not be recorded.
  expect(offered(plan).acceptable).toBeUndefined();
  expect(offered({ ...plan, phase: 'failed' }, rolloutOf(plan)).acceptable).toBeUndefined();
});

test('a check without an answer can be accepted only if the plan waits for it', async () => {
  const checks = [{ name: 'disk', state: 'Unknown' as const }];
  const plan: ShownPlan = { ...(await planIn({})), checks };
  const wait = {
    reason: { code: 'HealthUnknown', message: 'no answer' },
    ends: 'the check answers',
  } as ShownPlan['waits'][number];
  expect(offered(plan, rolloutOf(plan)).acceptable).toBeUndefined();
  expect(offered({ ...plan, waits: [wait] }, rolloutOf(plan)).acceptable).toEqual(['disk']);
});

test('the retry of left-out nodes is offered with their names, but not if a command cannot retry them', async () => {
  const situations = [{ kind: 'LeftOut', nodes: ['w2'], held: [], isEdited: false }] as const;
  const plan: ShownPlan = { ...(await planIn({ states: DONE })), situations };
  expect(offered(plan).leftOut).toEqual(['w2']);
  expect(offered({ ...plan, texts: kubeadmModule }).leftOut).toBeUndefined();
  const pinned = [{ kind: 'PinnedLeftOut', nodes: ['w2'] }] as const;
  expect(offered({ ...plan, situations: pinned }).leftOut).toBeUndefined();
});

test('a roll-back is offered for an ended plan whose run is recorded and has changed nodes', async () => {
  const plan = await planIn({ states: DONE });
  const command = { kind: 'command', takesImage: false };
  expect(offered(plan, rolloutOf(plan)).rollBack).toEqual(command);
  expect(offered(plan).rollBack).toBeUndefined();
  const ofEarlierPlan = rolloutOf(plan, {}, { planUid: 'of an earlier plan' });
  expect(offered(plan, ofEarlierPlan).rollBack).toBeUndefined();
  expect(offered({ ...plan, phase: 'running' }, rolloutOf(plan)).rollBack).toBeUndefined();
  const wayBack = { state: 'closed', message: 'the binary is gone' } as const;
  expect(offered({ ...plan, wayBack }, rolloutOf(plan)).rollBack).toBeUndefined();
  expect(offered({ ...plan, stages: [] }, rolloutOf(plan)).rollBack).toBeUndefined();
});

test('a roll-back that failed is not rolled back, because nobody knows which run is meant', async () => {
  const plan = await planIn({ states: DONE });
  const rollsBack = { run: 'old/id0' };
  const ended = (phase: string) => rolloutOf(plan, {}, { rollsBack, phase });
  expect(offered(plan, ended('failed')).rollBack).toBeUndefined();
  expect(offered(plan, ended('done')).rollBack).toBeDefined();
});

test('a plan whose nodes go back by hand has the sentence that says how', async () => {
  const plan = await planIn({ states: DONE });
  expect(offered(plan, undefined, kubeadmModule).rollBack).toEqual({
    kind: 'byHand',
    sentence:
      'Going back is done by hand: write the older patch and its binaries into the manifest, and run refit kubeadm apply --back; an older minor version needs a snapshot of etcd.',
  });
});
