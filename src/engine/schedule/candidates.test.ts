/** Which targets get the free slots, which wait for a gate, and which cannot start. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/builders/nodes.ts';
import { buildPolicy } from '../../../test/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/builders/snapshots.ts';
import { buildStage } from '../../../test/builders/stages.ts';
import { T0 } from '../../../test/builders/times.ts';
import type { TargetFacts } from '../model/decision.ts';
import { chooseTargets } from './slots.ts';

const sick = { ready: false };
const gone = { exists: false };

test.each<[string, number, Record<string, Partial<TargetFacts>>, object]>([
  ['in the order of the list', 2, {}, { chosen: ['w3', 'w1'] }],
  ['no more than there are', 9, {}, { chosen: ['w3', 'w1', 'w2'] }],
  ['nobody without a slot, and nobody is judged either', 0, { w3: gone }, {}],
  ['the ones behind who waits', 2, { w3: sick }, { chosen: ['w1', 'w2'], waiting: ['w3 node-ready'] }],
  ['the ones behind who cannot start', 1, { w3: gone }, { chosen: ['w1'], stopped: ['w3 target-exists'] }],
  ['those behind the last slot are not judged', 1, { w2: gone }, { chosen: ['w3'] }],
  [
    'nobody where all wait',
    2,
    { w1: sick, w2: sick, w3: sick },
    { waiting: ['w3 node-ready', 'w1 node-ready', 'w2 node-ready'] },
  ],
])('%s', (_name, slots, facts, wanted) => {
  const stage = buildStage('worker', ['w3', 'w1', 'w2'], { maxInFlight: 9 });
  const choice = chooseTargets(
    { snapshot: buildSnapshot(buildRollout([stage]), facts), policy: buildPolicy(), now: T0 },
    stage,
    stage.targets,
    slots,
  );
  const refused = (list: typeof choice.waiting): string[] => list.map(({ target, gate }) => `${target.name} ${gate}`);
  expect({
    chosen: choice.chosen.map(({ name }) => name),
    waiting: refused(choice.waiting),
    stopped: refused(choice.stopped),
  }).toEqual({ chosen: [], waiting: [], stopped: [], ...wanted });
});

test('each that is chosen counts against the limit of unavailable nodes for those behind it', () => {
  const stage = buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 9 });
  const fleet = ['w1', 'w2', 'w3', 'w4'].map((name) => buildNode(name));
  const snapshot = { ...buildSnapshot(buildRollout([stage])), fleet };
  const policy = buildPolicy({ name: 'careful', maxUnavailable: { percent: 50 } });
  const { chosen, waiting } = chooseTargets({ snapshot, policy, now: T0 }, stage, stage.targets, 9);
  expect(chosen.map(({ name }) => name)).toEqual(['w1', 'w2']);
  expect(waiting.map(({ reason }) => reason.message)).toEqual([
    '2 of 4 nodes are not Ready, unschedulable or at work (w1, w2); UpgradePolicy careful allows 2',
  ]);
});

test('a controller that waits holds up those behind it', () => {
  const stage = buildStage('controller', ['c1', 'c2'], { maxInFlight: 1 });
  const snapshot = buildSnapshot(buildRollout([stage]), { c1: sick });
  const { chosen, waiting } = chooseTargets(
    { snapshot: { ...snapshot, controlPlane: [] }, policy: buildPolicy(), now: T0 },
    stage,
    stage.targets,
    1,
  );
  expect({ chosen, waiting: waiting.map(({ target }) => target.name) }).toEqual({ chosen: [], waiting: ['c1'] });
});
