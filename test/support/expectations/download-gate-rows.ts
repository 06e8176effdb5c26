/**
 * The expected answers of the gates `downloads-possible` and `payload-present`. Each row has the gate, the situation, its input and the
 * answer.
 */
import { downloadsPossible } from '../../../src/engine/gates/downloads-possible.ts';
import { payloadPresent } from '../../../src/engine/gates/payload-present.ts';
import type { Gate, GateInput } from '../../../src/engine/gates/types.ts';
import type { RequiredDownload } from '../../../src/engine/model/downloads.ts';
import { input, saying } from '../builders/gate-inputs.ts';
import { buildPolicy } from '../builders/rollout-policies.ts';
import { later } from '../clock/times.ts';

const needing = (requiredDownload: RequiredDownload | undefined): GateInput =>
  input('worker', { requiredDownload });
const FAILED: RequiredDownload = { kind: 'failed', problem: 'its Job failed', since: later(0) };
const PENDING =
  'wait DownloadPending: n1 downloads what the plan installs, before its node is cordoned';
const ALONE = 'wait DownloadFailed: n1 cannot download what the plan installs: its Job failed';

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
  [payloadPresent, 'nothing must be downloaded', needing(undefined), 'pass'],
  [payloadPresent, 'the payload is there', needing({ kind: 'done' }), 'pass'],
  [payloadPresent, 'the target was not asked yet', needing({ kind: 'unasked' }), PENDING],
  [payloadPresent, 'the target downloads', needing({ kind: 'asked' }), PENDING],
  [payloadPresent, 'it has another payload', needing({ kind: 'outdated' }), PENDING],
  [
    payloadPresent,
    'the download makes no progress',
    needing({ kind: 'asked', problem: 'its Job failed' }),
    ALONE,
  ],
  [payloadPresent, 'the download failed', needing(FAILED), ALONE],
  [
    payloadPresent,
    'the policy wants no download before',
    { ...needing(FAILED), policy: buildPolicy({ prefetch: 'none' }) },
    'pass',
  ],
  [
    payloadPresent,
    'the intent was recorded after the download',
    {
      ...needing({ kind: 'unasked' }),
      target: { ...needing(undefined).target, state: 'intended' },
    },
    'pass',
  ],
];
