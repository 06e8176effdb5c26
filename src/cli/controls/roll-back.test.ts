/** Tests the write of `refit rollback` while a leader writes the same plan. */
import { expect, test } from 'vitest';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildViewParts, recorded, statusOf } from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { StatusError } from '../../kube/status-error.ts';
import { RefitError } from '../../util/errors.ts';
import { inspect } from '../status/observe.ts';
import type { Session } from '../status/status-session.ts';
import { runOf, writeUnlessChanged } from './roll-back.ts';

const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });

function planAt(resourceVersion: string, state = 'Completed', version = k0supdate.version): Plan {
  const status = statusOf(state, [], recorded({ w1: 'SignalCompleted' }, '2026-01-01T00:00:00Z'));
  const plan = buildPlan({ commands: [{ k0supdate: { ...k0supdate, version } }] }, status);
  return { ...plan, metadata: { ...plan.metadata, resourceVersion } };
}

/**
 * Calls the write as a command that has read version 1 of the plan, and returns what was written. The API server stores
 * the version of `present`.
 */
async function written(present: Plan): Promise<string[]> {
  const viewParts = buildViewParts({}, []);
  const seen = await inspect(
    { dialect: autopilot, world: buildWorld([], []) },
    planAt('1'),
    viewParts,
    T0,
  );
  const client = { get: () => Promise.resolve(present) };
  const session = { client, abort: AbortSignal.abort(), viewParts } as unknown as Session;
  const tried: string[] = [];
  await writeUnlessChanged(session, seen, T0, (resourceVersion = '') => {
    tried.push(resourceVersion);
    if (resourceVersion === present.metadata.resourceVersion) return Promise.resolve();
    return Promise.reject(new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' }));
  });
  return tried;
}

test('a roll-back whose plan the leader has written meanwhile reads the plan again and writes it', async () => {
  expect(await written(planAt('1'))).toEqual(['1']);
  expect(await written(planAt('2'))).toEqual(['1', '2']);
});

test('a roll-back writes nothing if the spec is another one, or the plan was replaced, or runs again', async () => {
  await expect(written(planAt('2', 'Completed', 'v9.9.9'))).rejects.toThrow(
    'the plan was changed meanwhile',
  );
  const other = planAt('2');
  const replaced = { ...other, metadata: { ...other.metadata, uid: 'another' } };
  await expect(written(replaced)).rejects.toThrow('the plan was changed meanwhile');
  await expect(written(planAt('2', 'SchedulableWait'))).rejects.toThrow('the plan still runs');
});

/** Looks for the run in this history, as the command does. Returns the index of the found run, or the error. */
async function runIn(runs: readonly Partial<NodeRolloutRun>[], run: string | undefined) {
  const viewParts = buildViewParts({}, []);
  const plan = planAt('1');
  const world = buildWorld([], []);
  const seen = await inspect({ dialect: autopilot, world }, plan, viewParts, T0);
  const history = runs.map((each) => ({ planUid: plan.metadata.uid, ...each }));
  const client = { get: () => Promise.resolve({ status: { history } }) };
  const session = { client, abort: AbortSignal.abort(), viewParts } as unknown as Session;
  return await runOf(session, seen, run === undefined ? {} : { run }).then(
    (found) => history.findIndex((each) => each === found.run),
    (error: unknown) => error instanceof RefitError && error.line,
  );
}

test('the error about a run that is not in the history names the recorded runs and where to see them', async () => {
  const history = [{ id: 'first' }];
  expect(await runIn(history, 'second')).toBe(
    'REFIT_CONTROL: the history of the NodeRollout has no run second; it has first (see the runs with `refit history`)',
  );
  expect(await runIn(history, 'first')).toBe(0);
});

test('runs with the same id: the start names one of them, and the id alone is refused', async () => {
  const early = '2026-01-01T00:00:00Z';
  const late = '2026-01-01T01:00:00Z';
  const history = [
    { id: 'plan.yaml', started: late },
    { id: 'other', started: late },
    { id: 'plan.yaml', started: early, planUid: 'replaced' },
  ];
  expect(await runIn(history, 'plan.yaml')).toBe(
    `REFIT_CONTROL: the NodeRollout has 2 runs with the id plan.yaml; choose one of them with --run: plan.yaml@${late}, plan.yaml@${early} (see the runs with \`refit history\`)`,
  );
  expect(await runIn(history, `plan.yaml@${early}`)).toBe(2);
  expect(await runIn(history, `plan.yaml@${late}`)).toBe(0);
  expect(await runIn(history, 'other')).toBe(1);
  expect(await runIn(history, undefined)).toBe(0);
  expect(await runIn(history, 'none')).toContain(
    `it has plan.yaml@${late}, other, plan.yaml@${early}`,
  );
});
