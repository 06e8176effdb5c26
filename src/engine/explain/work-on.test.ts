/** Shows when the words about a target or a whole plan call its work a roll-back. */
import { expect, test } from 'vitest';
import { succeeded } from '../../../test/support/builders/observations.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { Rollout, RolloutWork, Stage } from '../model/rollout.ts';
import { workOfRollout, workOn } from './work-on.ts';

const OLD = 'v1.36.2+x.0';
const NEW = 'v1.36.4+x.0';

const reporting = (from: string) => ({ observation: { ...succeeded(), report: { from } } });

test.each<[string, Partial<TargetFacts>, Partial<Rollout>, Partial<Stage>, RolloutWork]>([
  ['about which nothing is known', {}, {}, {}, 'upgrade'],
  ['that runs an older version', { version: OLD }, {}, {}, 'upgrade'],
  ['that runs this version', { version: 'v1.36.3+x.2' }, {}, {}, 'upgrade'],
  ['that runs a newer version', { version: NEW }, {}, {}, 'roll-back'],
  ['that ran a newer version before', { version: OLD, ...reporting(NEW) }, {}, {}, 'roll-back'],
  ['that ran an older version before', { version: NEW, ...reporting(OLD) }, {}, {}, 'upgrade'],
  ['that was asked for a newer version', { version: NEW, asked: 'v1.37.0+x.0' }, {}, {}, 'upgrade'],
  ['of a plan that goes back from a run', {}, { rollsBack: 'uid/id1' }, {}, 'roll-back'],
  ['of a stage that goes back', { version: OLD }, {}, { goesBack: true }, 'roll-back'],
])('the work on a target %s has its name', (_title, facts, rollout, more, work) => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended')], more);
  const snapshot = buildSnapshot(buildRollout([stage], rollout), { w1: facts });
  const [target] = stage.targets;
  expect(target && workOn(snapshot, stage, target)).toBe(work);
});

const BACK = buildStage('worker', ['w1'], { goesBack: true });

test.each<[string, readonly Stage[], Partial<Rollout>, RolloutWork]>([
  ['that goes back from a recorded run', [], { rollsBack: 'uid/id1' }, 'roll-back'],
  ['of which every stage goes back', [BACK], {}, 'roll-back'],
  ['of which one stage goes back', [BACK, buildStage('worker', ['w2'])], {}, 'upgrade'],
  ['without a target', [{ ...BACK, targets: [] }], {}, 'upgrade'],
])('the work of a plan %s has its name', (_title, stages, more, work) => {
  expect(workOfRollout(buildSnapshot(buildRollout(stages, more)))).toBe(work);
});
