/**
 * The expected answers of the gate `downloads-possible`. Each row has the gate, the situation, its input and the
 * answer.
 */
import { downloadsPossible } from '../../../src/engine/gates/downloads-possible.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import { saying } from '../builders/gate-inputs.ts';

export const DOWNLOAD_ROWS: readonly [Gate, string, GateInput, string][] = [
  [downloadsPossible, 'nobody to ask, or a target has started', saying({}), 'pass'],
  [downloadsPossible, 'all can', saying({ w1: 'possible', w2: 'possible' }, 0), 'pass'],
  [
    downloadsPossible,
    'one cannot: also when another one has not answered',
    saying(
      { w1: 'asked', w2: { problem: 'http://x/file: x answered 404 Not Found' }, w3: 'possible' },
      0,
    ),
    'wait DownloadImpossible: w2 cannot download http://x/file: x answered 404 Not Found',
  ],
  [
    downloadsPossible,
    'one still cannot after 5 min',
    saying({ w1: { problem: 'x' } }, 300_000),
    'pass',
  ],
  [
    downloadsPossible,
    'two have not answered',
    saying({ w1: 'asked', w2: 'unasked', w3: 'possible' }, 9_999),
    'wait DownloadsUnchecked: 2 agents did not say yet whether the files of the plan can be downloaded',
  ],
  [
    downloadsPossible,
    'nobody answers in time',
    saying({ w1: 'asked', w2: 'unasked' }, 10_000),
    'pass',
  ],
  [downloadsPossible, 'a command that only reads', saying({ w1: 'unasked' }), 'pass'],
];
