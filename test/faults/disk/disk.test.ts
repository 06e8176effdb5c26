/**
 * Tests a part of the trials with disk faults in every test run. A seed chooses this part. It contains a larger share
 * of the trials at files that are swapped.
 */
import { expect, test } from 'vitest';
import { WHOLE } from '../../support/whole.ts';
import { seededRandom } from '../random.ts';
import { runDisk } from './disk-run.ts';
import { bytesOf, NEW, UPDATE } from './disk-works.ts';
import {
  type FileTrial,
  fileTrials,
  isFineOnDisk,
  nameOfTrial,
  tryFile,
  WORKS,
} from './file-sweep.ts';
import { servePayload } from './payload-server.ts';

const SEED = Number(process.env['REFIT_SEED'] ?? 1);
/**
 * The test runs one of this many trials: the first number is for the trials that are not of a swap, and the second
 * number is for the trials of a swap. `npm run lab` runs all trials.
 */
const [SHARE, SHARE_OF_SWAP] = WHOLE ? [8, 1] : [32, 3];

const BINARIES = ['k0s', 'k0s.new', 'k0s.previous', 'k0s.previous.new', 'bin'];
const BUNDLES = [
  'images',
  'bundle.tar',
  'v1.35.1+k0s.0.tar',
  'airgap-bundles.json',
  'airgap-bundles.json.new',
];

/**
 * Reports whether the trial concerns an operation that changes the names of binaries and bundles, or that syncs these
 * names.
 */
function isOfSwap({ point: { file } }: FileTrial): boolean {
  return [...BINARIES, ...BUNDLES].includes(file);
}

test.each(WORKS)(
  '$name leaves what is whole, and comes to an end, whatever the disk does',
  async (work) => {
    await using server = await servePayload(bytesOf(NEW));
    const random = seededRandom(SEED);
    const trials = (await fileTrials(work, server)).filter(
      (trial) => random() < 1 / (isOfSwap(trial) ? SHARE_OF_SWAP : SHARE),
    );
    expect(trials.filter(isOfSwap).length).toBeGreaterThan(20);
    for (const trial of trials) {
      const verdict = await tryFile(trial, server);
      expect(
        isFineOnDisk(verdict)
          ? ''
          : `${nameOfTrial(trial)}: ${JSON.stringify({ ...verdict, points: [] })}`,
      ).toBe('');
    }
  },
);

test('on a disk that syncs nothing, a loss of power is the end of a host', async () => {
  await using server = await servePayload(bytesOf(NEW));
  const { points } = await runDisk({ work: UPDATE, server });
  const ends = new Set<string>();
  for (const { nth, file } of points) {
    if (file !== 'bin') continue;
    const fault = { nth, kind: 'contents' } as const;
    for (const violation of (await runDisk({ work: UPDATE, server, fault, lies: true })).violations)
      ends.add(violation);
  }
  expect([...ends]).toContain('no bootable binary at the path');
});
