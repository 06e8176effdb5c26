/** Proves which cordons and Jobs count as left behind by a Plan, and how the leader observes them. */
import { expect, test } from 'vitest';
import {
  complete,
  HASH,
  job as jobOn,
  NAMESPACE,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { HOUR, later } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { withCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import { annotated, type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { orphanedPlans } from './cattle-orphaned-work.ts';
import { markOf } from './leader-drain.ts';
import { HELD_ANNOTATION } from './names.ts';

const plan: CattlePlan = { ...buildCattlePlan('p'), status: { latestHash: HASH } };
const applying = (...hosts: string[]): CattlePlan => ({
  ...plan,
  status: { latestHash: HASH, applying: hosts },
});
const open = buildNode('a', { labels: { 'kubernetes.io/hostname': 'host-a' } });
const cordonFrom = (at: string, { metadata } = plan): Node =>
  withCordon(open, writeOwner({ ...markOf(metadata), attempt: at }));
const cordoned = cordonFrom(later(HOUR));
const started = jobOn('a');
const held = annotated(
  { ...started, spec: { ...started.spec, suspend: true } },
  { [HELD_ANNOTATION]: 'true' },
);

const DELETED = 'its plan was deleted';
const DROPPED = 'its plan no longer selects it, or has another version';
const GONE = 'its node was deleted';

function left(plans: readonly CattlePlan[], node: Node | undefined, ...made: readonly Job[]) {
  const world = buildWorldOf([nodes, node ? [node] : []], [jobs, made]);
  return orphanedPlans(NAMESPACE, world, plans);
}

/** Returns one text for each cordon and each Job that is left behind: the name of its Plan and the reason. */
const told = (...found: Parameters<typeof left>): string[] =>
  left(...found).map(({ rollout, plan: of }) => `${of.metadata.name}: ${rollout.reason?.message}`);

test('a cordon of a deleted Plan is left on its node', () => {
  const [found, ...others] = left([], cordoned);
  const metadata = { name: 'deleted', namespace: NAMESPACE, uid: 'p-uid' };
  expect(others).toEqual([]);
  expect(found?.plan).toEqual({ metadata });
  expect(found?.rollout).toMatchObject({
    id: '',
    phase: 'failed',
    reason: { message: DELETED },
    source: {
      kind: 'Plan',
      name: 'deleted',
      namespace: NAMESPACE,
      uid: 'p-uid',
      created: later(HOUR),
      mark: { ...markOf(metadata), attempt: later(HOUR) },
    },
    stages: [{ targets: [{ key: 'a', name: 'a', state: 'failed', since: later(HOUR) }] }],
  });
});

test('a cordon of a Plan that exists is left, unless the node is in progress or has a Job at work', () => {
  expect(told([plan], cordoned)).toEqual([`p: ${DROPPED}`]);
  expect(told([applying('host-b')], cordoned)).toEqual([`p: ${DROPPED}`]);
  expect(told([applying('host-a')], cordoned)).toEqual([]);
  expect(told([plan], cordoned, started)).toEqual([]);
  expect(told([plan], cordoned, jobOn('a', [complete]))).toEqual([`p: ${DROPPED}`]);
  expect(told([plan], cordoned, jobOn('b'))).toContain(`p: ${DROPPED}`);
  const { status: _status, ...fresh } = plan;
  expect(told([fresh], cordoned)).toEqual([`p: ${DROPPED}`]);
});

test('cordons of nobody, of other namespaces and of other dialects are not its own', () => {
  const elsewhere = buildCattlePlan('p');
  const moved = { ...elsewhere, metadata: { ...elsewhere.metadata, namespace: 'elsewhere' } };
  for (const node of [
    open,
    { ...open, spec: { unschedulable: true } },
    cordonFrom(later(0), moved),
    withCordon(open, `${NAMESPACE}/p-uid/${later(0)}/Plan`),
    withCordon(open, `p-uid/${later(0)}/CattlePlan`),
    withCordon(open, ''),
  ])
    expect(told([], node)).toEqual([]);
});

test('a held Job is left if its Plan has another version, or the node is not in progress', () => {
  expect(told([plan], open, held)).toEqual([`p: ${DROPPED}`]);
  expect(told([applying('host-a')], open, held)).toEqual([]);
  expect(told([applying('host-b')], open, held)).toEqual([`p: ${DROPPED}`]);
  const another = { ...plan, status: { latestHash: 'another', applying: ['host-a'] } };
  expect(told([another], open, held)).toEqual([`p: ${DROPPED}`]);
  const { status: _status, ...fresh } = plan;
  expect(told([fresh], open, held)).toEqual([`p: ${DROPPED}`]);
  expect(told([plan], open, started), 'a Job at work').toEqual([]);
});

test('a Job whose node was deleted is left until it ends', () => {
  expect(told([applying('host-a')], undefined, held)).toEqual([`p: ${GONE}`]);
  expect(told([applying('host-a')], undefined, started)).toEqual([`p: ${GONE}`]);
  expect(told([plan], undefined, jobOn('a', [complete]))).toEqual([]);
  const paused = { ...started, spec: { ...started.spec, parallelism: 0 } };
  expect(told([plan], undefined, paused)).toEqual([]);
});

test('Kubernetes deletes the Jobs of a deleted Plan, so they are not left', () => {
  expect(told([], open, held)).toEqual([]);
  expect(told([], undefined, started)).toEqual([]);
  const { ownerReferences: _owners, ...metadata } = started.metadata;
  expect(told([plan], undefined, { ...started, metadata })).toEqual([]);
});

test('the leader sees a Job that is left as work that began with it', () => {
  const [found] = left([plan], undefined, started);
  expect(found?.plan).toEqual({ metadata: plan.metadata });
  expect(found?.rollout).toMatchObject({
    id: HASH,
    phase: 'failed',
    source: { name: 'p', uid: 'p-uid', created: later(0), mark: { attempt: later(0) } },
    stages: [{ targets: [{ key: 'a', name: 'a', state: 'intended', since: later(0) }] }],
  });
});
