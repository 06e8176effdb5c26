/**
 * Tests which targets may go back to an older version according to a record, and that nothing except the record allows
 * it.
 */

import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { answered, UNASKED } from './asked.ts';
import { earlierRunsIn, goesBack } from './earlier-versions.ts';
import type { Role } from './rollout.ts';
import { runIdIn } from './runs.ts';

const OLD = 'v1.36.1+build.0';
const NEW = 'v1.36.3+build.0';
const history = [
  {
    id: 'id1',
    planUid: 'old-uid',
    before: [
      { role: 'worker', version: OLD, others: true },
      { role: 'worker', version: 'v1.36.0+build.0', nodes: ['w2'] },
      { role: 'worker', nodes: ['w3'] },
      { role: 'controller', version: OLD, nodes: ['c1'] },
      { role: 'controller', version: 'v1.35.9+build.0', nodes: ['c2'] },
    ],
  },
  { id: 'id2', planUid: 'old-uid' },
  'nonsense',
];

interface Case {
  readonly role?: Role;
  readonly to?: string;
  readonly rollsBack?: string;
  readonly signalledBy?: string;
  readonly isControllerFirst?: boolean;
}

test.each<[string, string, Case, boolean]>([
  ['the version that most nodes ran', 'w1', {}, true],
  ['what its kubelet reported of it', 'w1', { to: OLD }, true],
  ['a version that it did not run', 'w1', { to: 'v1.36.2+build.0' }, false],
  ['a node with another version before', 'w2', {}, false],
  ['its own version before', 'w2', { to: 'v1.36.0+build.0' }, true],
  ['a node whose version was unknown', 'w3', {}, false],
  ['a node that no plan of this uid signalled', 'w9', { signalledBy: 'other-uid' }, false],
  ['another attempt of this plan', 'w9', { signalledBy: 'plan-uid' }, true],
  ['an annotation that names no recorded run', 'w2', { rollsBack: 'old-uid/id2' }, false],
  ['an annotation that names another plan', 'w2', { rollsBack: 'forged/id1' }, false],
  ['a controller after the workers', 'c1', { role: 'controller' }, true],
  ['a controller before workers', 'c1', { role: 'controller', isControllerFirst: true }, false],
  ['a controller to an older minor', 'c2', { role: 'controller', to: 'v1.35.9+build.0' }, false],
])('whether a way back leads to the version of the run before: %s', (_, name, given, expected) => {
  const { role = 'worker', to = OLD, rollsBack = 'old-uid/id1', signalledBy = 'old-uid' } = given;
  const own = { ...buildStage(role, [name]), id: 'own', version: to };
  const workers = { ...buildStage('worker', ['w7']), id: 'workers' };
  const stages = given.isControllerFirst === true ? [own, workers] : [workers, own];
  const built = buildRollout(stages);
  const rollout = { ...built, source: { ...built.source, uid: 'plan-uid' }, rollsBack };
  const earlierRuns = earlierRunsIn(history);
  const place = { plan: '', place: '', exists: true };
  const decisions = answered({ ...place, approvals: [], accepted: [], earlierRuns });
  const facts = { version: NEW, signalledBy };
  expect(goesBack({ rollout, plan: { decisions } }, own, { name }, facts)).toBe(expected);
  expect(goesBack({ rollout, plan: { decisions: UNASKED } }, own, { name }, facts)).toBe(false);
  const without = { ...rollout, rollsBack: undefined };
  expect(goesBack({ rollout: without, plan: { decisions } }, own, { name }, facts)).toBe(false);
});

test.each([
  ['uid/id1', 'id1'],
  ['uid/release/1.37', 'release/1.37'],
  // Everybody who can write the Plan can write these values. The id of a run is never empty.
  ['id1', 'id1'],
  ['uid/', 'uid/'],
])('the run %j has the id %j', (named, id) => {
  expect(runIdIn(named)).toBe(id);
});
