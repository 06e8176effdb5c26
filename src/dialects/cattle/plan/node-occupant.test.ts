/**
 * Proves what prevents a plan from starting its Job on a node: other work on the node, or another Node with the same
 * host name.
 */
import { expect, test } from 'vitest';
import { complete, job as jobOn } from '../../../../test/support/builders/cattle-decisions.ts';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { withCordon, writeOwner } from '../../../drain/cordon-marks.ts';
import type { RecordedState } from '../../../engine/model/rollout.ts';
import { annotated, type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { claimOf, withClaim } from '../../../signal/at-work.ts';
import { markOf } from './leader-drain.ts';
import { HELD_ANNOTATION } from './names.ts';
import { isOfSomePlan, occupantOf, twinOf } from './node-occupant.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const plan = buildCattlePlan('p');
const other = buildCattlePlan('other');
const host = (name: string, label = name): Node =>
  buildNode(name, { labels: { [HOSTNAME]: label } });
const open = host('a');

/** Returns a copy of the Job that belongs to the Plan `other`. */
function ofOther(job: Job): Job {
  const [owner] = job.metadata.ownerReferences ?? [];
  const { name, uid = '' } = other.metadata;
  const labels = { ...job.metadata.labels, 'upgrade.cattle.io/plan': name };
  const ownerReferences = owner ? [{ ...owner, name, uid }] : [];
  return { ...job, metadata: { ...job.metadata, name: `${name}-job`, labels, ownerReferences } };
}

function occupant(node: Node | undefined, made: readonly Job[] = [], state?: RecordedState) {
  const world = buildWorldOf([nodes, node ? [node] : []], [jobs, made]);
  return occupantOf(world, buildTarget('a', state), plan);
}

test('a node without other work has no occupant', () => {
  expect(occupant(open)).toBeUndefined();
  expect(occupant(undefined)).toBeUndefined();
  expect(occupant(open, [jobOn('a')]), 'its own Job').toBeUndefined();
});

test('the Job of another Plan occupies the node while it is at work or held', () => {
  const job = ofOther(jobOn('a'));
  const suspended = { ...job, spec: { ...job.spec, suspend: true } };
  const held = annotated(suspended, { [HELD_ANNOTATION]: 'true' });
  const words = 'Plan system-upgrade/other';
  expect(occupant(open, [jobOn('a'), job])).toBe(words);
  expect(occupant(open, [held])).toBe(words);
  expect(occupant(undefined, [job]), 'its Node was deleted').toBe(words);
  expect(occupant(open, [ofOther(jobOn('a', [complete]))])).toBeUndefined();
  expect(occupant(open, [{ ...job, spec: { ...job.spec, parallelism: 0 } }])).toBeUndefined();
  expect(occupant(open, [ofOther(jobOn('b'))])).toBeUndefined();
  expect(occupant(open, [job], 'done'), 'the node is done').toBeUndefined();
});

test('a Job that no Plan owns occupies nothing', () => {
  const job = ofOther(jobOn('a'));
  const owned = (apiVersion: string, kind: string): Job => ({
    ...job,
    metadata: { ...job.metadata, ownerReferences: [{ apiVersion, kind, name: 'x', uid: 'x' }] },
  });
  const { ownerReferences: _owners, ...metadata } = job.metadata;
  const others = [
    { ...job, metadata },
    owned('upgrade.cattle.io/v1', 'Other'),
    owned('autopilot.k0sproject.io/v1beta2', 'Plan'),
  ];
  expect(isOfSomePlan(job)).toBe(true);
  for (const each of others) {
    expect(isOfSomePlan(each)).toBe(false);
    expect(occupant(open, [each])).toBeUndefined();
  }
  const [owner] = job.metadata.ownerReferences ?? [];
  const first = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' };
  const ownerReferences = owner ? [first, owner] : [];
  expect(isOfSomePlan({ ...job, metadata: { ...job.metadata, ownerReferences } })).toBe(true);
});

test('a node that another plan claims, signalled, or cordoned has that plan as its occupant', () => {
  expect(occupant(withClaim(open, claimOf('cattle', other)))).toBe(
    'plan cattle/system-upgrade/other',
  );
  expect(occupant(withClaim(open, claimOf('cattle', plan)))).toBeUndefined();
  expect(occupant(annotated(open, buildSignal({ planId: 'id1' })))).toBe(
    'plan id1, which signalled it,',
  );
  const foreign = withCordon(open, `uid/${later(0)}/Plan`);
  expect(occupant(foreign)).toBe('plan uid, which cordoned it,');
  expect(occupant({ ...foreign, spec: {} }), 'a mark without its cordon').toBeUndefined();
  expect(occupant({ ...open, spec: { unschedulable: true } }), 'a cordon of a person').toBe(
    undefined,
  );
  expect(occupant(withCordon(open, writeOwner(markOf(plan.metadata))))).toBeUndefined();
});

test('Nodes with one host name keep each other from starting', () => {
  const world = buildWorldOf(
    [nodes, [host('a', 'x'), host('b', 'x'), host('c'), buildNode('d'), buildNode('e')]],
    [jobs, []],
  );
  const obstacle = {
    message: 'the Nodes a, b have the same label kubernetes.io/hostname=x',
    ends: 'each Node has its own value of the label',
  };
  const twin = (name: string, state: RecordedState = 'pending') => twinOf(world, { name, state });
  expect([twin('a'), twin('b')]).toEqual([obstacle, obstacle]);
  expect(twin('a', 'intended')).toEqual(obstacle);
  expect(twin('a', 'done')).toBeUndefined();
  expect([twin('c'), twin('d'), twin('missing')]).toEqual([undefined, undefined, undefined]);
  expect(occupantOf(world, buildTarget('a'), plan)).toEqual(obstacle);
  const atWork = buildWorldOf(
    [nodes, [host('a', 'x'), host('b', 'x')]],
    [jobs, [ofOther(jobOn('a'))]],
  );
  expect(occupantOf(atWork, buildTarget('a'), plan)).toEqual(obstacle);
});
