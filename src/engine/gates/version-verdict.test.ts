/** Versions that could not be checked are reported when the plan starts. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/builders/snapshots.ts';
import { buildStage } from '../../../test/builders/stages.ts';
import { uncheckedReason } from '../decide/advance.ts';
import type { Snapshot } from '../model/decision.ts';

const stage = buildStage('worker', ['w1', 'w2'], { version: 'v1.36.3' });
const apiServers = [{ name: 'c1', version: 'v1.36.3' }];

test.each<[string, Partial<Snapshot>, readonly (string | undefined)[], string | undefined]>([
  ['every version is known', { apiServers }, ['v1.35.1', 'v1.35.1'], undefined],
  ['one is not', { apiServers }, ['v1.35.1', undefined], 'version checks skipped for w2: its version is unknown'],
  ['nobody judges versions', {}, [undefined, undefined], undefined],
  [
    'bundles keep the version',
    { apiServers, rollout: buildRollout([{ ...stage, keepsVersion: true }]) },
    [],
    undefined,
  ],
])('%s', (_name, more, [first, second], message) => {
  const facts = { w1: { version: first }, w2: { version: second } };
  const snapshot = { ...buildSnapshot(more.rollout ?? buildRollout([stage]), facts), ...more };
  expect(uncheckedReason(snapshot, buildPolicy())?.message).toBe(message);
});
