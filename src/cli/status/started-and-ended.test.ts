/** Proves that a second run of the same plan is timed from its own start, and that the first run still is. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { latestHash } from '../../dialects/cattle/plan/latest.ts';
import { jobs, nodes, pods } from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import { observe } from './observe.ts';
import { render } from './render.ts';

const NOW = T0 + 2 * HOUR;
const hosts = ['a', 'b'].map((name) =>
  buildNode(name, { labels: { 'kubernetes.io/hostname': name } }),
);
const HASH = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const counts = { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 };

/** Shows a Plan of Rancher whose version was resolved when it was created, and that had these runs. */
async function shown(
  runs: (uid: string) => readonly NodeRolloutRun[] | Error,
  generation = 2,
  complete: 'True' | 'False' = 'False',
) {
  const built = buildCattlePlan('p');
  const metadata = { ...built.metadata, generation, creationTimestamp: later(0) };
  const conditions = [
    { type: 'Validated', status: 'True', reason: 'PlanIsValid', lastUpdateTime: later(0) },
    { type: 'LatestResolved', status: 'True', reason: 'Version', lastUpdateTime: later(0) },
    { type: 'Complete', status: complete, reason: 'SyncJob', lastUpdateTime: later(HOUR) },
  ];
  const status = { latestVersion: 'v1.2.3', latestHash: HASH, applying: [], conditions };
  const asked: string[] = [];
  const answer = runs(metadata.uid ?? '');
  const parts = buildViewParts({
    runs: async () => {
      asked.push('runs');
      return await (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
    },
  });
  const plans = await observe(
    {
      dialect: cattleView,
      plans: () => [{ ...built, metadata, status }],
      world: buildWorldOf([nodes, hosts], [jobs, []], [pods, []]),
    },
    parts,
    NOW,
  );
  const look = { hasColours: false, size: () => ({ columns: 200, rows: 50 }), advises: true };
  return { text: render({ leader: { state: 'none' }, plans }, 'text', NOW, look), plans, asked };
}

const first = (planUid: string): NodeRolloutRun => ({
  id: 'first',
  planUid,
  started: later(0),
  ended: later(HOUR),
  phase: 'done',
  counts,
});

test('the new run of an edited Plan starts now while the leader has not recorded it', async () => {
  const { text, plans } = await shown((uid) => [first(uid)]);
  expect(plans[0]?.started).toBe(rfc3339(NOW));
  expect(text).toContain('running 0/2 for 0 s');
});

test('an edited Plan counts from the recorded start of its new run', async () => {
  const started = later(HOUR + 30 * MINUTE);
  const { plans } = await shown((uid) => [
    { id: HASH, planUid: uid, started, phase: 'running', counts },
    first(uid),
  ]);
  expect(plans[0]?.started).toBe(started);
});

test('runs of an earlier Plan with the same name do not change the start', async () => {
  const { plans } = await shown(() => [first('uid of the earlier Plan')]);
  expect(plans[0]?.started).toBe(later(0));
});

test('a user without the right to read NodeRollouts sees the earliest recorded time, without an error', async () => {
  const { plans } = await shown(() => new Error('forbidden'));
  expect([plans[0]?.started, plans[0]?.unseen]).toEqual([later(0), undefined]);
});

test('a Plan whose channel or Secret began another run counts from the recorded start of this run', async () => {
  const started = later(HOUR + 30 * MINUTE);
  const present = { id: HASH, started, phase: 'running', counts } as const;
  const { plans } = await shown((uid) => [{ ...present, planUid: uid }, first(uid)], 1);
  expect(plans[0]?.started).toBe(started);
});
