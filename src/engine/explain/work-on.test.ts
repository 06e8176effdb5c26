/** Shows when the words about a whole plan call its work a roll-back. */
import { expect, test } from 'vitest';
import type { Snapshot } from '../model/snapshot.ts';
import { workOfRollout } from './work-on.ts';

const targets = [{ name: 'w1', key: 'w1', state: 'pending' }];
const back = { goesBack: true, version: 'v1.36.2', targets };

test.each<[string, object, string]>([
  ['that goes back from a recorded run', { rollsBack: 'uid/id1', stages: [] }, 'roll-back'],
  ['of which every stage goes back', { stages: [back] }, 'roll-back'],
  ['without a target', { stages: [{ ...back, targets: [] }] }, 'upgrade'],
])('the work of a plan %s has its name', (_plan, rollout, work) => {
  const snapshot = { rollout, targets: new Map() } as unknown as Snapshot;
  expect(workOfRollout(snapshot)).toBe(work);
});
