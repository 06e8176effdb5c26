/** Shows that each recorded intent is signalled once, however many targets are in flight. */
import { expect, test } from 'vitest';
import { sent, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { Observation } from '../model/facts.ts';
import { commandsFor } from './commands.ts';

/**
 * Returns the names of the targets that a turn signals if the targets with these observations are all recorded as
 * intended.
 */
function signalledOf(observations: readonly Observation[]): string[] {
  const names = observations.map((_observation, index) => `w${index}`);
  const targets = names.map((name) => buildTarget(name, 'intended'));
  const stage = buildStage('worker', targets, { maxInFlight: targets.length });
  const facts = Object.fromEntries(
    observations.map((observation, index) => [`w${index}`, { observation }]),
  );
  const snapshot = buildSnapshot(buildRollout([stage]), facts);
  return commandsFor(assess(snapshot, buildPolicy(), T0)).flatMap((command) =>
    command.kind === 'signal' ? [command.signalling.target.name] : [],
  );
}

const many = (count: number, observation: Observation): Observation[] =>
  Array.from({ length: count }, () => observation);

test.each([1, 20, 21, 100, 101, 300])(
  'of %i targets in flight, none is signalled again',
  (count) => {
    expect(signalledOf(many(count, sent()))).toEqual([]);
    expect(signalledOf(many(count, working('Restart')))).toEqual([]);
  },
);

test.each([20, 21, 101])(
  'beside %i targets in flight, only the two others are signalled',
  (count) => {
    const none: Observation = { kind: 'none' };
    const observations = [none, ...many(count, sent()), none];
    expect(signalledOf(observations)).toEqual(['w0', `w${count + 1}`]);
  },
);
