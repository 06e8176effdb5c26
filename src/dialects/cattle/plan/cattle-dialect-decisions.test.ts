/** Tests which nodes of a Plan get a Job, and what the Jobs of the Plan mean for their nodes. */
import { describe, expect, test } from 'vitest';
import {
  checkPasses,
  complete,
  dialect,
  GOOD,
  HASH,
  hashOf,
  job,
  NAMESPACE,
  NOTHING,
  NOW,
  node,
  of,
  pass,
  policyOf,
  running,
  worldOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import type { CattleSpec } from '../../../../test/support/builders/cattle-plans.ts';
import { begun } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { HOUR, later, MINUTE } from '../../../../test/support/clock/times.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import { annotated, type Job, jobs, nodes } from '../../../kube/resources.ts';

const LABEL = 'plan.upgrade.cattle.io/p';

const failed = {
  type: 'Failed',
  status: 'True',
  reason: 'Why',
  message: 'because',
  lastTransitionTime: later(MINUTE),
} as const;

const FAILED = {
  type: 'RefitFailedNodes',
  status: 'True',
  message: `a at ${later(10 * MINUTE)}; generation 0`,
};

describe('passes', () => {
  checkPasses([
    [
      'a new Plan records the host name of its node in applying, and the node gets its Job',
      { plan: of(), nodes: [node('a')] },
      { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'with concurrency 2, Refit starts two Jobs in the fixed order, and lists applying by name',
      { plan: of({ concurrency: 2 }), nodes: ['a', 'b', 'c', 'd'].map((name) => node(name)) },
      { applying: ['host-a', 'host-c'], signalled: ['c', 'a'] },
    ],
    [
      'nothing to select is complete',
      { plan: of() },
      { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
    ],
    [
      'a Plan without a node selector selects no node, and is complete',
      {
        plan: { ...of(), spec: { concurrency: 1, version: 'v1.2.3', upgrade: { image: 'img' } } },
        nodes: [node('a')],
      },
      { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
    ],
    [
      'a Plan with concurrency 0 selects no node, and is complete',
      { plan: of({ concurrency: 0 }), nodes: [node('a')] },
      { conditions: ['Complete True Complete', ...GOOD, NOTHING] },
    ],
    [
      'a Plan is complete if its nodes are done, disabled, or without a host name',
      {
        plan: of(),
        nodes: [node('a', { [LABEL]: HASH }), node('b', { [LABEL]: 'disabled' }), buildNode('c')],
      },
      { conditions: ['Complete True Complete', ...GOOD] },
    ],
    [
      'a node with the label of an earlier hash gets a Job',
      { plan: of(), nodes: [node('a', { [LABEL]: hashOf('v1.2.2') })] },
      { applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'a node that is not Ready waits, and the Plan reports RefitWaits',
      { plan: of(), nodes: [node('a', {}, 'False')] },
      {
        conditions: [
          'Complete False Resolved',
          ...GOOD,
          'RefitWaits True Gate a slot is free, but no node may start yet; run: refit why --plan cattle/system-upgrade/p',
        ],
      },
    ],
    [
      'a node that is not Ready does not hold up the other nodes',
      { plan: of(), nodes: [node('a', {}, 'False'), node('b')] },
      { conditions: ['Complete False SyncJob', ...GOOD], applying: ['host-b'], signalled: ['b'] },
    ],
    [
      'a Job at work is waited for',
      { plan: of({}, running(['host-a'])), nodes: [node('a'), node('b')], jobs: [job('a')] },
      { applying: ['host-a'] },
    ],
    [
      'a node that is listed in applying without a Job gets its Job',
      { plan: of({}, running(['host-a'])), nodes: [node('a'), node('b')] },
      { applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'when a Job is complete, the same status update frees its slot and records the next node',
      {
        plan: of({}, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a', [complete])],
      },
      { applying: ['host-b'], signalled: ['b'] },
    ],
    [
      'a node that is not Ready after its Job keeps its slot',
      {
        plan: of({}, running(['host-a'])),
        nodes: [node('a', {}, 'False'), node('b')],
        jobs: [job('a', [complete])],
      },
      { applying: ['host-a'] },
    ],
    [
      'a node whose Job failed keeps its slot, and the Plan reports the reason',
      {
        plan: of({}, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a', [failed])],
      },
      {
        conditions: [
          `Complete False JobFailed Job ${NAMESPACE}/${job('a').metadata.name} failed on Node a: Why: because`,
          ...GOOD,
          `RefitFailedNodes True JobFailed ${FAILED.message}`,
        ],
        applying: ['host-a'],
      },
    ],
    [
      'a failed node stays failed after Kubernetes deletes its Job, while the second slot goes on',
      {
        now: NOW + HOUR,
        plan: of({ concurrency: 2 }, running(['host-a'], [FAILED])),
        nodes: [node('a'), node('b'), node('c')],
      },
      { applying: ['host-a', 'host-c'], signalled: ['c'] },
    ],
    [
      'a new version begins anew with it',
      {
        plan: of({ version: 'v1.2.4' }, running(['host-a'], [FAILED])),
        nodes: [node('a')],
      },
      { conditions: ['Complete False Resolved', ...GOOD], applying: ['host-a'], signalled: ['a'] },
    ],
    [
      'a running Job of an earlier version keeps its slot, and no Job of the new version starts',
      {
        plan: of({ version: 'v1.2.4' }, running(['host-a'])),
        nodes: [node('a'), node('b')],
        jobs: [job('a')],
      },
      { applying: ['host-a'] },
    ],
    [
      'a node that is left out while its Job works holds its slot',
      {
        plan: of({}, running(['host-a'])),
        nodes: [node('a', { [LABEL]: 'disabled' }), node('b')],
        jobs: [job('a')],
      },
      { applying: ['host-a'] },
    ],
    [
      'a node that no longer exists frees its slot for the next node',
      { plan: of({}, running(['host-a'])), nodes: [node('b')] },
      { applying: ['host-b'], signalled: ['b'] },
    ],
  ]);
});

test.each<[string, Partial<CattleSpec>, boolean]>([
  ['a Plan that cordons makes its node schedulable again', { cordon: true }, false],
  ['so does one that drains', { drain: {} }, false],
  ['a Plan that neither cordons nor drains leaves an existing cordon on its node', {}, true],
])('a node that is done has the hash and its labels; %s', (_name, spec, unschedulable) => {
  const labels = { 'example.com/version': 'at-$(LATEST_VERSION)' };
  const cordoned = { ...node('a', { mine: 'yes' }), spec: { unschedulable: true } };
  const plan = of({ ...spec, postCompleteLabels: labels }, running(['host-a']));
  const [finished] = pass({
    plan,
    nodes: [cordoned],
    jobs: [job('a', [complete], 'v1.2.3', spec)],
  }).finished;
  expect(finished?.metadata.labels).toMatchObject({
    mine: 'yes',
    [LABEL]: HASH,
    'example.com/version': 'at-v1.2.3',
  });
  expect(finished?.spec?.unschedulable ?? false).toBe(unschedulable);
});

test('a node that rests carries pods again, and is labelled only afterwards', () => {
  const spec = { cordon: true, postCompleteDelay: '10m' };
  const plan = of(spec, running(['host-a']));
  const cordoned = begun({ ...node('a'), spec: { unschedulable: true } }, plan, HASH);
  const world = worldOf({ plan, nodes: [cordoned], jobs: [job('a', [complete], 'v1.2.3', spec)] });
  const { nodeActions } = decide(gather(dialect, plan, world, NOW), policyOf(plan), NOW);
  const [nodeAction] = nodeActions;
  expect([nodeActions.length, nodeAction?.kind]).toEqual([1, 'acknowledge']);
  const rollout = dialect.resolve(plan, world, NOW);
  const instruction =
    nodeAction &&
    dialect.signal.acknowledge?.(world, rollout, nodeAction.stage, nodeAction.target, NOW);
  const free = annotated(
    { ...cordoned, spec: {} },
    { 'cordon.refit.upgrade.cattle.io/p': 'found' },
  );
  expect(instruction).toEqual({
    kind: 'replace',
    resource: nodes,
    object: annotated(free, {
      'system-upgrade.attempt.refit.upgrade.cattle.io/p': expect.stringContaining(
        `"succeeded":"${later(MINUTE)}"`,
      ),
    }),
  });
});

test('a failed Job of a deleted Plan with the same name does not count for the new Plan', () => {
  const earlier = job('a', [failed]);
  const [owner] = earlier.metadata.ownerReferences ?? [];
  const foreignTarget = {
    ...earlier,
    metadata: { ...earlier.metadata, ownerReferences: owner ? [{ ...owner, uid: 'old' }] : [] },
  };
  expect(pass({ plan: of(), nodes: [node('a')], jobs: [foreignTarget] }).signalled).toEqual(['a']);
});

test('a Job that the original left paused is set going, once its node is recorded', () => {
  const left = job('a');
  const paused: Job = { ...left, spec: { ...left.spec, parallelism: 0 } };
  const { plan, sent } = pass({ plan: of(), nodes: [node('a')], jobs: [paused] });
  expect(plan.status?.applying).toEqual(['host-a']);
  expect(sent).toEqual([
    {
      kind: 'replace',
      resource: jobs,
      object: { ...paused, spec: { ...left.spec, parallelism: 1 } },
    },
  ]);
});
