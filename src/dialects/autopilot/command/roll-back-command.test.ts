/** What `refit rollback` says when it must not take nodes of k0s back. */
import { expect, test } from 'vitest';
import { RefitError } from '../../../util/errors.ts';
import type { UnclearNode } from '../plan/roll-back-plan.ts';
import { refuseUndecided } from './roll-back-command.ts';

const LAGS: UnclearNode = {
  role: 'worker',
  name: 'w1',
  sentence: 'w1 reported that v2 is installed, but still shows v1',
  why: 'lags',
  mayHaveMoved: true,
};
const UNTOLD: UnclearNode = {
  role: 'worker',
  name: 'w2',
  sentence: 'w2: its present version is unknown',
  why: 'untold',
  mayHaveMoved: true,
};

test.each<[string, UnclearNode[], string, string]>([
  ['nothing unclear', [], '', ''],
  [
    'a worker that does not show its version yet',
    [LAGS],
    'it is not clear whether w1 must go back: w1 reported that v2 is installed, but still shows v1',
    'run this again when its object shows the version that runs; if somebody has put w1 back by hand, remove its signal: kubectl annotate node w1 k0sproject.io/autopilot-signal-data-',
  ],
  [
    'a controller that does not show its version yet',
    [{ ...LAGS, role: 'controller', name: 'c1' }],
    'it is not clear whether c1 must go back: w1 reported',
    'kubectl annotate controlnode c1 k0sproject.io/autopilot-signal-data-',
  ],
  [
    'a worker without a version',
    [UNTOLD],
    'it is not clear whether w2 must go back: w2: its present version is unknown',
    'run this again when its object shows the version that runs, or put w2 back by hand first: controllers must not go back before their workers',
  ],
  [
    'both',
    [UNTOLD, LAGS],
    'it is not clear whether w2, w1 must go back: w2: its present version is unknown; w1 reported',
    'remove its signal: kubectl annotate node w1',
  ],
])('%s', (_name, undecided, message, hint) => {
  const said = refusalOf(undecided);
  expect(said?.message ?? '').toContain(message);
  expect(said?.line ?? '').toContain(hint);
  expect(said === undefined).toBe(undecided.length === 0);
});

function refusalOf(undecided: readonly UnclearNode[]): RefitError | undefined {
  try {
    refuseUndecided(undecided);
    return undefined;
  } catch (error) {
    if (error instanceof RefitError) return error;
    throw error;
  }
}
