/** Proves what a target reports: from its Job, from an earlier Job, and from its Node if it has no Job. */
import { expect, test } from 'vitest';
import {
  complete,
  HASH,
  job as jobOn,
  node as nodeOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later, MINUTE } from '../../../../test/support/clock/times.ts';
import type { Observation } from '../../../engine/model/facts.ts';
import type { RecordedState, Rollout } from '../../../engine/model/rollout.ts';
import {
  annotated,
  type Condition,
  type Job,
  jobs,
  type Node,
  nodes,
  type Pod,
  pods,
} from '../../../kube/resources.ts';
import { type Attempts, attemptsOf } from './attempts.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { isLeftOut, observationOf, openOn, ownJob } from './job-observation.ts';
import { HELD_ANNOTATION } from './names.ts';

const LABEL = 'plan.upgrade.cattle.io/p';
const failed: Condition = {
  type: 'Failed',
  status: 'True',
  reason: 'BackoffLimitExceeded',
  message: 'too many failures',
  lastTransitionTime: later(MINUTE),
};
const open = nodeOf('a');
const cordoned: Node = { ...open, spec: { unschedulable: true } };
const NOTHING = { kind: 'none' };

const withSpec = (job: Job, spec: Job['spec']): Job => ({ ...job, spec: { ...job.spec, ...spec } });
const createdAt = (job: Job, creationTimestamp: string): Job => ({
  ...job,
  metadata: { ...job.metadata, creationTimestamp },
});
const held = (job: Job): Job =>
  withSpec(annotated(job, { [HELD_ANNOTATION]: 'true' }), { suspend: true });
const paused = withSpec(jobOn('a'), { parallelism: 0 });

interface Situation {
  readonly job?: Job | undefined;
  readonly others?: readonly Job[];
  readonly node?: Node | undefined;
  readonly pods?: readonly Pod[];
  readonly state?: RecordedState;
  readonly rollout?: Partial<Rollout>;
  readonly restMs?: number;
  readonly spec?: Partial<CattleSpec>;
  readonly drainsHere?: boolean;
  readonly attempts?: Attempts;
}

function worldOf({ job, others = [], pods: found = [], ...more }: Situation) {
  const node = 'node' in more ? more.node : open;
  const made = [...(job ? [job] : []), ...others];
  return buildWorldOf([nodes, node ? [node] : []], [jobs, made], [pods, found]);
}

function reported(situation: Situation): Observation {
  const { state = 'intended', rollout, restMs, spec, drainsHere = true, attempts } = situation;
  const target = buildTarget('a', state);
  const rest = restMs === undefined ? {} : { restMs };
  const stage = buildStage('worker', [target], { version: 'v1.2.3', ...rest });
  return observationOf({
    world: worldOf(situation),
    rollout: buildRollout([stage], { id: HASH, ...rollout }),
    stage,
    target,
    plan: buildCattlePlan('p', spec),
    attempts,
    drainsHere,
  });
}

const working = (step: string, more: object = {}) => ({
  kind: 'working',
  step,
  attempt: later(0),
  since: later(0),
  ...more,
});

test('a Job reports its state, and the time of its last change', () => {
  const started = jobOn('a');
  const { active: _active, ...idle } = started.status ?? {};
  expect(reported({ job: started })).toEqual(working('Running'));
  const { startTime: _startTime, ...fresh } = idle;
  expect(reported({ job: { ...started, status: fresh } })).toEqual(working('Starting'));
  const podless = reported({
    job: { ...started, status: { ...idle, startTime: later(0) } },
    spec: { serviceAccountName: 'upgrader' },
  });
  expect(podless).toMatchObject({
    step: 'Starting',
    stalled: expect.stringContaining('ServiceAccount system-upgrade/upgrader exists'),
  });
  expect(reported({ job: withSpec(started, { suspend: true }) })).toEqual(working('Suspended'));
  expect(reported({ job: jobOn('a', [complete]) })).toEqual({
    kind: 'succeeded',
    attempt: later(0),
    since: later(MINUTE),
    isUnkept: true,
  });
  expect(reported({ job: jobOn('a', [failed]) })).toEqual({
    kind: 'failed',
    attempt: later(0),
    since: later(MINUTE),
    message: `Job system-upgrade/${started.metadata.name} failed on Node a: BackoffLimitExceeded: too many failures`,
  });
  expect(reported({ job: jobOn('a', [{ type: 'Failed', status: 'True' }]) })).toMatchObject({
    message: expect.stringMatching(/ failed on Node a: : $/),
    since: later(0),
  });
});

test.each<[string, Job['status'], string]>([
  ['runs its second pod', { active: 1, ready: 1, failed: 1 }, 'Running, after 1 failed pod'],
  ['starts its third pod', { active: 1, failed: 2 }, 'Running, after 2 failed pods'],
  ['waits before its next pod', { failed: 12 }, 'Starting, after 12 failed pods'],
  ['lost no pod', { active: 1, failed: 0 }, 'Running'],
])('a Job that %s says how many of its pods have failed', (_what, status, step) => {
  const job = { ...jobOn('a'), status: { startTime: later(0), ...status } };
  expect(reported({ job })).toMatchObject({ kind: 'working', step });
});

test('a Job of the leader that waits for its drain says nothing about pods', () => {
  const job = withSpec({ ...jobOn('a'), status: { failed: 1 } }, { suspend: true });
  expect(reported({ job })).toMatchObject({ step: 'Suspended' });
});

test('the time of a Job without a status is that of its creation', () => {
  const { status, ...bare } = createdAt(jobOn('a'), later(MINUTE));
  expect(reported({ job: bare })).toMatchObject({ attempt: later(MINUTE), since: later(MINUTE) });
  const started = { ...bare, status: { ...status, startTime: later(2 * MINUTE) } };
  expect(reported({ job: started })).toMatchObject({
    attempt: later(MINUTE),
    since: later(2 * MINUTE),
  });
  const { creationTimestamp: _time, ...metadata } = bare.metadata;
  expect(reported({ job: { ...bare, metadata } })).toMatchObject({ attempt: '', since: '' });
});

test('a Job whose pod cannot start is starting, and says why', () => {
  const pod: Pod = {
    metadata: {
      name: 'pod',
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'a' }],
    },
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', message: 'no node matches.' }],
    },
  };
  expect(reported({ job: jobOn('a'), pods: [pod] })).toEqual(
    working('Starting', { stalled: 'its pod cannot be scheduled: no node matches' }),
  );
});

test('a held Job waits for the drain by the leader, if its target is in progress', () => {
  const job = held(jobOn('a'));
  const drain = working('Drain', { waitsFor: 'drain', cancellable: true });
  expect(reported({ job })).toEqual(drain);
  expect(reported({ job, state: 'pending' })).toEqual(NOTHING);
  expect(reported({ job, drainsHere: false })).toEqual(NOTHING);
  expect(reported({ job, drainsHere: false, rollout: { phase: 'failed' } })).toEqual(drain);
});

test('a Job whose node was deleted after the rollout can be cancelled', () => {
  const gone = { job: jobOn('a'), node: undefined };
  expect(reported({ ...gone, rollout: { phase: 'failed' } })).toEqual(
    working('Gone', { cancellable: true }),
  );
  expect(reported(gone)).toEqual(working('Running'));
  expect(reported({ ...gone, job: undefined, rollout: { phase: 'failed' } })).toEqual(NOTHING);
});

test('a target that is done reports nothing, whatever its Job says', () => {
  expect(reported({ job: jobOn('a'), state: 'done' })).toEqual(NOTHING);
});

test('a paused Job reports nothing, because nothing of it has started', () => {
  expect(reported({ job: paused })).toEqual(NOTHING);
});

test('before its own Job exists, a node in progress reports the Job of an earlier version', () => {
  const earlier = createdAt(jobOn('a', [], 'v1.1.0'), later(-MINUTE));
  const step = 'the earlier Job for v1.1.0';
  expect(reported({ others: [earlier] })).toEqual(working(step, { attempt: later(-MINUTE) }));
  expect(reported({ job: paused, others: [earlier] })).toMatchObject({ step });
  expect(reported({ others: [earlier], state: 'pending' })).toEqual(NOTHING);
  expect(reported({ others: [jobOn('a', [complete], 'v1.1.0')] })).toEqual(NOTHING);
  const { 'upgrade.cattle.io/version': _version, ...labels } = earlier.metadata.labels ?? {};
  const unnamed = { ...earlier, metadata: { ...earlier.metadata, labels } };
  expect(reported({ others: [unnamed] })).toMatchObject({
    step: 'the earlier Job for an earlier version',
  });
});

test('an ended Job does not count if the node got another Job afterwards', () => {
  const ended = jobOn('a', [complete]);
  const next = createdAt(jobOn('a', [complete], 'v1.3.0'), later(HOUR));
  expect(reported({ job: ended, others: [next] })).toEqual(NOTHING);
  expect(reported({ job: jobOn('a'), others: [next] })).toEqual(working('Running'));
});

test('a Job of an earlier machine with the name of the node does not count', () => {
  const made: Node = {
    ...open,
    metadata: { ...open.metadata, creationTimestamp: later(HOUR) },
    status: {
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: later(2 * HOUR) }],
    },
  };
  const config = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
  const ended = { job: jobOn('a', [complete]), node: made };
  expect(reported({ ...ended, attempts: attemptsOf(config) })).toEqual(NOTHING);
  expect(reported(ended)).toMatchObject({ kind: 'succeeded' });
  expect(reported({ ...ended, node: open, attempts: attemptsOf(config) })).toMatchObject({
    kind: 'succeeded',
  });
});

test('with a rest after each node, a complete Job keeps its slot until the node is uncordoned', () => {
  const spec = { cordon: true };
  const ended = jobOn('a', [complete], 'v1.2.3', spec);
  const resting = { job: ended, node: cordoned, restMs: MINUTE, spec };
  expect(reported(resting)).toEqual(
    working('Complete', { waitsFor: 'uncordon', since: later(MINUTE), isUnkept: true }),
  );
  const gone = { kind: 'succeeded', attempt: later(0), since: later(MINUTE) };
  const succeeded = { ...gone, isUnkept: true };
  expect(reported({ ...resting, node: open })).toEqual(succeeded);
  expect(reported({ ...resting, restMs: 0 })).toEqual(succeeded);
  const { restMs: _rest, ...without } = resting;
  expect(reported(without)).toEqual(succeeded);
  expect(reported({ ...resting, node: undefined })).toEqual(gone);
  expect(reported({ ...resting, job: jobOn('a', [], 'v1.2.3', spec) })).toEqual(working('Running'));
  const unmarked = { ...resting, job: jobOn('a', [complete]) };
  expect(reported(unmarked), 'a Job that does not cordon').toEqual(succeeded);
});

test('a node that the Plan no longer selects is left out, unless it has a Job', () => {
  const spec = { nodeSelector: { matchLabels: { zone: 'other' } } };
  const leftOut = { kind: 'succeeded', attempt: '', since: '' };
  const problem = { code: 'InvalidPlan', message: 'wrong' } as const;
  expect(reported({ spec })).toEqual(leftOut);
  expect(reported({})).toEqual(NOTHING);
  expect(reported({ spec, state: 'pending' })).toEqual(NOTHING);
  expect(reported({ spec, node: undefined })).toEqual(NOTHING);
  expect(reported({ spec, job: paused })).toEqual(NOTHING);
  expect(reported({ spec, rollout: { phase: 'failed' } })).toEqual(NOTHING);
  expect(reported({ spec, rollout: { problems: [problem] } })).toEqual(NOTHING);
  expect(reported({ spec, node: nodeOf('a', { [LABEL]: HASH }) }), 'its label is wrong').toEqual(
    NOTHING,
  );
  expect(reported({ spec, node: nodeOf('a', { [LABEL]: 'older' }) })).toEqual(leftOut);
});

test('only a node without a Job of this version is left out', () => {
  const rollout = buildRollout([], { id: HASH });
  const plan = buildCattlePlan('p', { nodeSelector: { matchLabels: { zone: 'other' } } });
  const asked = (...made: readonly Job[]): boolean =>
    isLeftOut(worldOf({ others: made }), rollout, open, plan);
  expect(asked()).toBe(true);
  expect(asked(jobOn('a'))).toBe(false);
  expect(asked(jobOn('a', [], 'v1.1.0'))).toBe(true);
});

test('a complete Job is remembered after its deletion, until the node gets another one', () => {
  const plan = buildCattlePlan('p');
  const rollout = buildRollout([], { id: HASH });
  const config = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
  const attempts = attemptsOf(config);
  const own = (...made: readonly Job[]) =>
    ownJob(worldOf({ others: made }), rollout, 'a', plan, attempts);
  const ended = jobOn('a', [complete]);
  const next = createdAt(jobOn('a', [complete], 'v1.3.0'), later(HOUR));
  expect(own()).toBeUndefined();
  expect(own(ended)).toBe(ended);
  expect(own()).toBe(ended);
  expect(own(next)).toBeUndefined();
  expect(own(ended, next)).toBe(ended);
  expect(ownJob(worldOf({}), rollout, 'a', plan, undefined)).toBeUndefined();
});

test('a superseded Job is not remembered', () => {
  const plan = buildCattlePlan('p');
  const attempts = attemptsOf({
    name: 'c',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  });
  const own = (...made: readonly Job[]) =>
    ownJob(worldOf({ others: made }), buildRollout([], { id: HASH }), 'a', plan, attempts);
  const ended = jobOn('a', [complete]);
  expect(own(ended, createdAt(jobOn('a', [complete], 'v1.3.0'), later(HOUR)))).toBe(ended);
  expect(own()).toBeUndefined();
});

test('the Jobs that may have cordoned a node are those that are not done, and its own', () => {
  const plan = buildCattlePlan('p');
  const own = jobOn('a', [complete]);
  const other = jobOn('a', [failed], 'v1.1.0');
  const done = nodeOf('a', { [LABEL]: HASH });
  const among = (node: Node, own: Job | undefined, ...made: readonly Job[]) =>
    openOn(node, plan, worldOf({ others: made }), own);
  expect(among(open, own, own, other)).toEqual([own, other]);
  expect(among(done, undefined, own, other)).toEqual([other]);
  expect(among(done, own, own, other), 'its own, although it is done').toEqual([other, own]);
  expect(among(open, own), 'its own, although it was deleted').toEqual([own]);
});
