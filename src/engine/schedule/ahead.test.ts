/** Anybody may have written which targets start next. */
import { expect, test } from 'vitest';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { candidatesIn, nextIn } from './ahead.ts';

test('a key that is recorded twice starts once, one that is unknown never', () => {
  const stage = buildStage('worker', ['w1', 'w2', 'w3'], { maxInFlight: 2 });
  const keyOf = (name: string): string =>
    stage.targets.find((target) => target.name === name)?.key ?? name;
  const recorded = { ...stage, ahead: 2, next: ['w3', 'w3', 'gone', 'w1'].map(keyOf) };
  expect(
    [nextIn(recorded), candidatesIn(recorded)].map((all) => all.map(({ name }) => name)),
  ).toEqual([
    ['w3', 'w1'],
    ['w3', 'w1', 'w2'],
  ]);
});
