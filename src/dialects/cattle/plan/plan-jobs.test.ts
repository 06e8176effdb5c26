/** Proves which Jobs belong to a plan and a node, which of them are at work, and what the cache keeps of them. */
import { expect, test } from 'vitest';
import {
  complete,
  HASH,
  job as jobOn,
  node as nodeOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later } from '../../../../test/support/clock/times.ts';
import { annotated, type Job, jobs, nodes, type ObjectMeta } from '../../../kube/resources.ts';
import { jobNamesOf } from './job.ts';
import { HELD_ANNOTATION } from './names.ts';
import {
  isOf,
  isPaused,
  isSuperseded,
  isUnfinished,
  jobFor,
  jobsAt,
  jobsByNode,
  jobsOn,
  latestJobsOn,
  nodeOf as nodeNameOf,
  nodesAtWork,
  openJobs,
  trimJob,
} from './plan-jobs.ts';
import { STAMP_ANNOTATION } from './stamps.ts';

const plan = buildCattlePlan('p');
const failed = { type: 'Failed', status: 'True', lastTransitionTime: later(0) } as const;
const withMeta = (job: Job, more: Partial<ObjectMeta>): Job => ({
  ...job,
  metadata: { ...job.metadata, ...more },
});
const labelled = (job: Job, labels: Record<string, string>): Job =>
  withMeta(job, { labels: { ...job.metadata.labels, ...labels } });
const at = (job: Job, creationTimestamp: string): Job => withMeta(job, { creationTimestamp });
const withSpec = (job: Job, spec: Job['spec']): Job => ({ ...job, spec: { ...job.spec, ...spec } });
const held = (job: Job): Job =>
  withSpec(annotated(job, { [HELD_ANNOTATION]: 'true' }), { suspend: true });
const worldOf = (...made: readonly Job[]) => buildWorldOf([nodes, []], [jobs, made]);

const started = jobOn('a');
const paused = withSpec(started, { parallelism: 0 });
const ended = jobOn('a', [complete]);
const broken = jobOn('a', [failed]);

test('a Job belongs to the Plan that owns it, not to another one with that name', () => {
  expect(isOf(started, plan)).toBe(true);
  expect(isOf(started, buildCattlePlan('q'))).toBe(false);
  expect(isOf(labelled(started, { 'upgrade.cattle.io/plan': 'q' }), plan)).toBe(false);
  expect(isOf(withMeta(started, { namespace: 'elsewhere' }), plan)).toBe(false);
  expect(isOf(withMeta(started, { ownerReferences: [] }), plan)).toBe(false);
  const { ownerReferences: _owners, labels: _labels, ...bare } = started.metadata;
  expect(
    isOf({ ...started, metadata: { ...bare, labels: started.metadata.labels ?? {} } }, plan),
  ).toBe(false);
  expect(isOf({ ...started, metadata: bare }, plan)).toBe(false);
  const again = { ...plan, metadata: { ...plan.metadata, uid: 'another' } };
  expect(isOf(started, again), 'a deleted Plan with the same name').toBe(false);
  const owners = started.metadata.ownerReferences ?? [];
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  expect(isOf(withMeta(started, { ownerReferences: [other, ...owners] }), plan)).toBe(true);
});

test('the Job of a rollout is found by its node, its hash, and its Plan', () => {
  const found = (id: string, node = 'a', of = plan, made = started) =>
    jobFor(worldOf(made), { id }, node, of);
  expect(found(HASH)).toBe(started);
  expect(found('another')).toBeUndefined();
  expect(found(HASH, 'b')).toBeUndefined();
  expect(found(HASH, 'a', buildCattlePlan('q'))).toBeUndefined();
  expect(found(HASH, 'a', plan, withMeta(started, { name: 'by-hand' }))).toBeUndefined();
});

test('the Job of a node with a dot in its name is found by its short name, and by its long one', () => {
  const job = jobOn('a.example.com');
  for (const name of jobNamesOf('p', 'a.example.com', HASH)) {
    const named = withMeta(job, { name });
    expect(jobFor(worldOf(named), { id: HASH }, 'a.example.com', plan)).toBe(named);
  }
});

test('the Jobs of a node are those with its label, of this Plan or of all', () => {
  const other = jobOn('b');
  const foreign = labelled(jobOn('a', [], 'v1.1.0'), { 'upgrade.cattle.io/plan': 'q' });
  const { labels: _labels, ...unlabelled } = started.metadata;
  const nobodys = { ...started, metadata: { ...unlabelled, name: 'bare' } };
  const world = worldOf(started, other, foreign, nobodys);
  expect(jobsAt(world, 'a')).toEqual([started, foreign]);
  expect(jobsAt(world, 'c')).toEqual([]);
  expect(jobsOn('a', plan, world)).toEqual([started]);
  expect([...jobsByNode(world).keys()]).toEqual(['a', 'b', undefined]);
  expect([nodeNameOf(started), nodeNameOf(nobodys)]).toEqual(['a', undefined]);
});

test('the newest Job of a node comes first', () => {
  const [old, middle, young] = ['v1', 'v2', 'v3'].map((version, index) =>
    at(jobOn('a', [], version), later(index * HOUR)),
  ) as [Job, Job, Job];
  const { creationTimestamp: _time, ...metadata } = jobOn('a', [], 'v4').metadata;
  const unknown = { ...started, metadata };
  expect(latestJobsOn('a', plan, worldOf(middle, unknown, young, old))).toEqual([
    young,
    middle,
    old,
    unknown,
  ]);
});

test('an ended Job is superseded by a later Job, or by one that is at work', () => {
  const younger = at(jobOn('a', [complete], 'v1.3.0'), later(HOUR));
  const older = at(jobOn('a', [complete], 'v1.1.0'), later(-HOUR));
  const working = at(jobOn('a', [], 'v1.1.0'), later(-HOUR));
  for (const job of [ended, broken]) {
    expect(isSuperseded(job, [job])).toBe(false);
    expect(isSuperseded(job, [older, job])).toBe(false);
    expect(isSuperseded(job, [job, younger])).toBe(true);
    expect(isSuperseded(job, [working, job])).toBe(true);
  }
  expect(isSuperseded(started, [started, younger])).toBe(false);
});

test('a Job is at work once it has started, until it completes or fails', () => {
  expect(isUnfinished(started)).toBe(true);
  for (const job of [paused, held(started), ended, broken]) expect(isUnfinished(job)).toBe(false);
  const { spec: _spec, ...bare } = started;
  expect([isPaused(paused), isPaused(started), isPaused(bare)]).toEqual([true, false, false]);
});

test('the nodes at work are those with a Job of this Plan at work', () => {
  const other = labelled(jobOn('b'), { 'upgrade.cattle.io/plan': 'q' });
  const world = worldOf(started, jobOn('c', [complete]), other, jobOn('d', [], 'v1.1.0'));
  expect([...nodesAtWork(plan, world)]).toEqual(['a', 'd']);
});

test('the hash label of a node names the Job that is no longer open', () => {
  const earlier = jobOn('a', [failed], 'v1.1.0');
  const world = worldOf(earlier, started, jobOn('b'));
  const label = 'plan.upgrade.cattle.io/p';
  expect(openJobs(nodeOf('a'), plan, world)).toEqual([earlier, started]);
  expect(openJobs(nodeOf('a', { [label]: HASH }), plan, world)).toEqual([earlier]);
});

test('the cache drops the template of a Job that Refit does not write again', () => {
  const stamp = started.metadata.annotations?.[STAMP_ANNOTATION];
  const selected = (job: Job): Job => withSpec(job, { selector: { matchLabels: {} } });
  expect(stamp).toBeDefined();
  for (const job of [started, ended]) {
    const { spec, metadata, status } = trimJob(selected(job));
    expect(Object.keys(spec ?? {})).not.toContain('template');
    expect(Object.keys(spec ?? {})).not.toContain('selector');
    expect(spec).toMatchObject({ completions: 1, parallelism: 1 });
    expect(metadata.annotations?.[STAMP_ANNOTATION]).toBeUndefined();
    expect(status).toBe(job.status);
  }
  for (const job of [paused, held(started), broken]) expect(trimJob(job)).toBe(job);
  const { spec: _spec, ...bare } = started;
  expect(trimJob(bare).spec).toEqual({});
});

test('the cache remembers that a Job cordons its node', () => {
  const cordons = jobOn('a', [], 'v1.2.3', { drain: {} });
  expect(trimJob(cordons).spec?.['template']).toEqual({
    spec: { initContainers: [{ name: 'cordon' }] },
  });
});
