/** Tests which plans need the locks that are shared with other tools. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import type { LockKeeper, LockNeed } from '../../coordination/lock-keeper.ts';
import { because } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { followLocks } from './followed-locks.ts';

const unread = because('RecordUnread', 'a StatusShard is missing');
const pending = buildStage('worker', [buildTarget('w1', 'pending')]);
const intended = buildStage('worker', [buildTarget('w1', 'intended')]);

test.each<[string, Rollout, LockNeed]>([
  ['no node in progress', buildRollout([pending]), 'waits'],
  ['a node in progress', buildRollout([intended]), 'at-work'],
  // The missing part of the record may name nodes in progress.
  ['a record that cannot be read as a whole', buildRollout([pending], { unread }), 'at-work'],
  ['an end', buildRollout([pending], { phase: 'failed', unread }), 'over'],
])('whether a plan with %s needs its lock', (_title, rollout, expected) => {
  const needs: LockNeed[] = [];
  const keeper = { follow: (_plan, _tools, need) => needs.push(need) } as Partial<LockKeeper>;
  const policy = buildPolicy({ coordinate: ['DisruptionLease'] });
  followLocks(keeper as LockKeeper, 'table/plan', buildSnapshot(rollout), policy);
  expect(needs).toEqual([expected]);
});
