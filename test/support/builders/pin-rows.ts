/** The answers of the gate about pins, as rows for the table of all gates. */
import { notPinned } from '../../../src/engine/gates/not-pinned.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { input } from './gate-inputs.ts';
import { buildPolicy } from './rollout-policies.ts';

const gpu = { matchLabels: { gpu: 'true' } };
const OLD = { selector: gpu, version: 'v1.30.2+k0s.0' };
const labelled = input('worker', { labels: { gpu: 'true' } });
const withPins = (...pins: readonly (typeof OLD)[]): GateInput => ({
  ...labelled,
  stage: { ...labelled.stage, version: 'v1.31.0+k0s.0' },
  policy: buildPolicy({ name: 'prod', pins }),
});

export const PIN_ROWS: readonly [Gate, string, GateInput, string][] = [
  [notPinned, 'no pin', withPins(), 'pass'],
  [notPinned, 'a pin of this version', withPins({ ...OLD, version: 'v1.31.0' }), 'pass'],
  [
    notPinned,
    'a pin of another version',
    withPins(OLD),
    'wait Pinned: n1 is pinned to v1.30.2+k0s.0 by spec.versions.pin[0] of UpgradePolicy prod, and the plan asks for v1.31.0+k0s.0',
  ],
  [
    notPinned,
    'two versions for one node',
    withPins(OLD, { selector: { matchLabels: {} } as typeof gpu, version: 'v1.31.0' }),
    'wait PolicyUnreadable: UpgradePolicy prod: spec.versions.pin[0] and pin[1] select n1 with different versions; each node may have one',
  ],
];
