/** Tests which nodes are said to have joined after a plan began, and why the plan includes them. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { readJoined } from './joined-reading.ts';
import { readRun } from './run-reading.ts';

interface Given {
  readonly state?: RecordedState;
  readonly since?: string;
  readonly created?: string | undefined;
  readonly policy?: Partial<RolloutPolicy>;
  readonly joined?: readonly JoinedTarget[] | undefined;
  readonly rollout?: Partial<Rollout>;
}

/** Returns the nodes that joined a plan that started at T0. By default, w1 joined one minute later and is pending. */
function joined({ state = 'pending', since = later(0), policy = {}, ...given }: Given) {
  const { created = later(MINUTE), joined: others = [] } = given;
  const stage = buildStage('worker', [buildTarget('w1', state, { since })]);
  const facts = { w1: { created: 'created' in given ? given.created : created } };
  const rollout = buildRollout([stage], given.rollout);
  const snapshot = withParts(buildSnapshot(rollout, facts), {
    plan: { joined: 'joined' in given ? given.joined : others },
  });
  const assessment = assess(snapshot, buildPolicy({ name: 'careful', ...policy }), T0 + MINUTE);
  const run = readRun(assessment, [
    { id: 'run-1', planUid: 'plan-uid', started: later(0) } as NodeRolloutRun,
  ]);
  if (run === undefined) throw new Error('the plan has no run');
  return readJoined(assessment, run);
}

const ONE_OF_ITS = {
  name: 'w1',
  isIncluded: true,
  reason: {
    code: 'NodeIncluded',
    message: 'w1 joined after the plan began, and is one of its targets',
  },
};
const AS_POLICY_SAYS = {
  ...ONE_OF_ITS,
  reason: {
    code: 'NodeIncluded',
    message: 'w1 joined after the plan began and is included, as newNodes of the policy says',
  },
};

test('a younger target is one of the plan, while it has not been upgraded', () => {
  expect(joined({})).toEqual([ONE_OF_ITS]);
  expect(joined({ state: 'intended' })).toEqual([ONE_OF_ITS]);
  expect(joined({ state: 'done' })).toEqual([]);
});

test.each<[string, Given]>([
  ['is as old as the run', { created: later(0) }],
  ['has no known age', { created: undefined }],
  ['is of a dialect in which such nodes become targets by themselves', { joined: undefined }],
  ['is of a plan that has ended', { rollout: { phase: 'failed' } }],
])('nothing is said about a node that %s', (_title, given) => {
  expect(joined(given)).toEqual([]);
});

test('the policy has included a node that is not younger than its place in the record', () => {
  const policy = { includesNew: true };
  expect(joined({ policy, since: later(2 * MINUTE) })).toEqual([AS_POLICY_SAYS]);
  expect(joined({ policy, since: later(MINUTE) })).toEqual([AS_POLICY_SAYS]);
  expect(joined({ policy, since: later(0) })).toEqual([ONE_OF_ITS]);
  expect(joined({ since: later(2 * MINUTE) })).toEqual([ONE_OF_ITS]);
  expect(joined({ policy: { includesNew: false }, since: later(2 * MINUTE) })).toEqual([
    ONE_OF_ITS,
  ]);
});

test('a node that is not in the record follows, with the reason why it is left out', () => {
  const place: JoinedTarget = {
    stage: '0/workers',
    role: 'worker',
    target: { ...buildTarget('w2'), key: '0/worker/w2' },
  };
  const [first, second, ...more] = joined({ joined: [place] });
  expect([first, more]).toEqual([ONE_OF_ITS, []]);
  expect(second).toMatchObject({ name: 'w2', isIncluded: false, reason: { code: 'NodeLeftOut' } });
});
