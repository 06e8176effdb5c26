/** Tests what is told of a node that several commands of one plan upgrade. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { readForPeople } from './inspect.ts';

test('the reading of an earlier command tells the version that a later command has installed', () => {
  const done = [buildTarget('w1', 'done')];
  const stages = [
    { ...buildStage('worker', done, { version: 'v1.36.2+x' }), id: '0/workers' },
    { ...buildStage('worker', done, { version: 'v1.36.3+x' }), id: '1/workers', command: 1 },
  ];
  const snapshot = buildSnapshot(buildRollout(stages, { phase: 'done' }));
  const reading = readForPeople(snapshot, buildPolicy(), T0);
  const told = reading.stages().map(({ targets: [target] }) => [target?.ran, target?.differs]);
  expect(told).toEqual([
    ['v1.36.3+x', true],
    [undefined, false],
  ]);
  expect(reading.differing()).toEqual([]);
});
