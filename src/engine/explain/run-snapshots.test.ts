/** Tests which snapshots of etcd the record of a run keeps, and that reports of nodes cannot damage this record. */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { later } from '../../../test/support/clock/times.ts';
import type { EtcdSnapshot } from '../../signal/annotations.ts';
import type { Role } from '../model/rollout.ts';
import { type RunSnapshot, snapshotsSince } from './run-snapshots.ts';

const HASH = 'ab'.repeat(32);
const TAKEN = { at: later(0), path: '/s/one', bytes: 5, sha256: HASH };

function since(
  reports: Readonly<Record<string, EtcdSnapshot | undefined>>,
  earlier?: readonly RunSnapshot[],
  role: Role = 'controller',
) {
  const facts = Object.fromEntries(
    Object.entries(reports).map(([name, etcdSnapshot]) => {
      const report = etcdSnapshot && { etcdSnapshot };
      const observation = {
        kind: 'succeeded',
        attempt: later(0),
        since: later(0),
        report,
      } as const;
      return [name, { observation }];
    }),
  );
  const rollout = buildRollout([buildStage(role, Object.keys(reports))]);
  return snapshotsSince(buildSnapshot(rollout, facts), earlier);
}

test('what a controller reports is recorded, and stays once the report is gone', () => {
  const recorded = since({ c1: TAKEN, c2: undefined });
  expect(recorded).toEqual([{ node: 'c1', ...TAKEN }]);
  expect(since({ c1: undefined }, recorded)).toEqual(recorded);
  expect(since({ c1: undefined })).toBeUndefined();
});

test('a later snapshot of the same controller replaces the earlier one, a failure does not', () => {
  const recorded = since({ c1: TAKEN });
  const next = { ...TAKEN, path: '/s/two' };
  expect(since({ c1: next }, recorded)).toEqual([{ node: 'c1', ...next }]);
  const failed = { at: later(5), failed: 'no room' };
  expect(since({ c1: failed }, recorded)).toEqual(recorded);
  expect(since({ c1: failed })).toEqual([{ node: 'c1', ...failed }]);
});

test('nothing is recorded for workers, and for a controller that has no etcd', () => {
  expect(since({ w1: TAKEN }, undefined, 'worker')).toBeUndefined();
  expect(since({ c1: { at: later(0), none: 'no etcd' } })).toBeUndefined();
});

test('values that the API server would refuse are left out or cut', () => {
  const odd = { ...TAKEN, path: 'p'.repeat(5000), bytes: -1, sha256: 'x' };
  expect(since({ c1: odd })).toEqual([{ node: 'c1', at: TAKEN.at, path: 'p'.repeat(512) }]);
  expect(since({ c1: { ...TAKEN, at: 'yesterday' } })).toBeUndefined();
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`c${at}`, TAKEN]));
  expect(since(many)).toHaveLength(10);
});

test.each<[string, object, object]>([
  ['is empty', { bytes: 0, sha256: HASH }, { bytes: 0, sha256: HASH }],
  ['has no size', { sha256: HASH }, { sha256: HASH }],
  ['has a size that is no whole number', { bytes: 1.5, sha256: HASH }, { sha256: HASH }],
  ['has a hash after other text', { bytes: 5, sha256: `x${HASH}` }, { bytes: 5 }],
  ['has a hash before other text', { bytes: 5, sha256: `${HASH}x` }, { bytes: 5 }],
])('what is recorded of a snapshot that %s', (_title, more, recorded) => {
  const taken = { at: TAKEN.at, path: TAKEN.path };
  expect(since({ c1: { ...taken, ...more } })).toStrictEqual([
    { node: 'c1', ...taken, ...recorded },
  ]);
});
