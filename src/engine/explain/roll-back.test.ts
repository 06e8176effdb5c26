/** Tests how people are told whether the leader rolls a plan back by itself. */
import { expect, test } from 'vitest';
import type { RollBackVerdict } from '../assess/roll-back.ts';
import { because } from '../model/reasons.ts';
import type { PlanReading } from './plan-reading.ts';
import { rollBackSentence } from './roll-back.ts';

type RollsBack = PlanReading['plan']['rollsBack'];

function sentence(verdict: RollBackVerdict | undefined, rollsBack?: RollsBack, isOver = false) {
  const plan = { rollsBack } as PlanReading['plan'];
  const controls = { policy: 'careful' } as PlanReading['controls'];
  return rollBackSentence({ plan, isOver, controls, rollBack: () => verdict });
}

const REFUSED: RollBackVerdict = {
  kind: 'refused',
  reason: because('RollBackRefused', 'it acts as Stop'),
};
const DUE = {
  kind: 'due',
  plan: {},
  reason: because('RollsBack', 'run run-1 is rolled back on w1'),
} as RollBackVerdict;
const RECORDED =
  'UpgradePolicy careful: Refit rolls the nodes back once the end of the run is in the NodeRollout';

test.each<[string, RollBackVerdict | undefined, string | undefined]>([
  [
    'the plan goes on',
    { kind: 'ahead' },
    'UpgradePolicy careful: if failures use up a budget, the plan stops and Refit rolls its nodes back',
  ],
  [
    'the plan is paused',
    { kind: 'paused' },
    'UpgradePolicy careful: Refit rolls the nodes back once nothing is paused; refit abort prevents that',
  ],
  ['the NodeRollout must be read', { kind: 'ask' }, RECORDED],
  ['the NodeRollout lacks the end', { kind: 'wait' }, RECORDED],
  [
    'a version is unknown',
    { kind: 'delayed', awaits: 'w1 has not reported yet', leftMs: 1 },
    'UpgradePolicy careful: Refit rolls the nodes back once it knows what each of them runs: w1 has not reported yet',
  ],
  ['it happens now', DUE, 'Refit rolls the nodes back now: run run-1 is rolled back on w1'],
  ['it must not happen', REFUSED, 'it acts as Stop'],
  ['the policy does not ask for it', undefined, undefined],
])('what is said of a roll-back by policy: %s', (_title, verdict, expected) => {
  expect(sentence(verdict)).toBe(expected);
});

test('a plan that rolls a run back says so, who asked, and that it is not rolled back itself', () => {
  const run = 'plan-uid/run-1';
  const back = 'this plan rolls run run-1 back';
  const asked = { run, reason: 'refit rollback' };
  expect(sentence(undefined, { run, reason: undefined })).toBe(back);
  expect(sentence(undefined, asked, true)).toBe(`${back}, says refit rollback`);
  expect(sentence({ kind: 'ahead' }, asked, true)).toBe(`${back}, says refit rollback`);
  expect(sentence(REFUSED, asked)).toBe(`${back}, says refit rollback`);
  expect(sentence(REFUSED, asked, true)).toBe(
    `${back}, says refit rollback; Refit does not roll back a roll-back`,
  );
});
