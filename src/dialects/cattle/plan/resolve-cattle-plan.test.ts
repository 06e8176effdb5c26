/** Proves which phase, stage and reason a Plan has, as they are recorded in its status. */
import { describe, expect, test } from 'vitest';
import {
  dialect,
  HASH,
  job,
  NOW,
  node,
  of,
  policyOf,
  running,
  worldOf,
} from '../../../../test/support/builders/cattle-decisions.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { later, SECOND } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import type { Rollout } from '../../../engine/model/rollout.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import type { Job, Node } from '../../../kube/resources.ts';

const DONE = node('a', { 'plan.upgrade.cattle.io/p': HASH });
const ABORTED = { type: 'RefitAborted', status: 'True', reason: 'Aborted', message: 'wrong image' };
const INVALID = { postCompleteDelay: '-30s' };

interface Situation {
  readonly plan: CattlePlan;
  readonly nodes?: readonly Node[];
  readonly jobs?: readonly Job[];
}

const resolved = ({ plan, ...objects }: Situation): Rollout =>
  dialect.resolve(plan, worldOf({ plan, ...objects }), NOW);

/** Returns the Plan after the leader has recorded its problems in the status. */
function recorded(situation: Situation): CattlePlan {
  const { plan } = situation;
  const { record } = decide(gather(dialect, plan, worldOf(situation), NOW), policyOf(plan), NOW);
  if (!record) throw new Error('nothing was recorded');
  return dialect.project(record, plan, NOW);
}

function withComplete(status: 'True' | 'False'): CattlePlan {
  const before = running([]);
  const conditions = before?.conditions?.map((each) =>
    each.type === 'Complete' ? { ...each, status } : each,
  );
  return of({}, { ...before, ...(conditions ? { conditions } : {}) });
}

function withAbort(plan: CattlePlan): CattlePlan {
  const annotations = { [ABORT_ANNOTATION]: 'wrong image' };
  return { ...plan, metadata: { ...plan.metadata, annotations } };
}

describe('the phase of a Plan', () => {
  const atWork = { nodes: [node('a')], jobs: [job('a')] };
  const stopped = of({}, running([], [ABORTED]));
  test.each<[string, Situation, Rollout['phase']]>([
    ['that records nothing', { plan: of(), nodes: [node('a')] }, 'new'],
    ['with a node to upgrade', { plan: of({}, running([])), nodes: [node('a')] }, 'running'],
    ['whose Job works', { plan: of({}, running(['host-a'])), ...atWork }, 'running'],
    ['whose Job is not recorded', { plan: of({}, running([])), ...atWork }, 'new'],
    ['that says it is complete', { plan: withComplete('True'), nodes: [DONE] }, 'done'],
    ['with a new node', { plan: withComplete('True'), nodes: [DONE, node('b')] }, 'running'],
    ['that does not say it yet', { plan: withComplete('False'), nodes: [DONE] }, 'running'],
    ['with a new problem', { plan: of(INVALID, running([])), nodes: [node('a')] }, 'new'],
    ['with a known problem', { plan: recorded({ plan: of(INVALID) }) }, 'invalid'],
    [
      'with a known problem, whose Job works',
      { plan: recorded({ plan: of(INVALID, running(['host-a'])), ...atWork }), ...atWork },
      'running',
    ],
    ['that was aborted', { plan: withAbort(stopped), nodes: [node('a')] }, 'failed'],
    [
      'that was aborted, whose Job works',
      { plan: withAbort(of({}, running(['host-a'], [ABORTED]))), ...atWork },
      'running',
    ],
    ['whose abort is not recorded', { plan: withAbort(of({}, running([]))) }, 'running'],
    ['whose abort was removed', { plan: stopped, nodes: [node('a')] }, 'new'],
  ])('%s', (_name, situation, phase) => {
    expect(resolved(situation).phase).toBe(phase);
  });
});

describe('the stage of a Plan', () => {
  test('has the concurrency, the version and the rest of the Plan', () => {
    const plan = of({ concurrency: 3, postCompleteDelay: '90s' });
    const { stages } = resolved({ plan, nodes: [node('a')] });
    expect(stages).toMatchObject([
      { id: 'nodes', role: 'worker', maxInFlight: 3, version: 'v1.2.3', forced: false },
    ]);
    expect(stages[0]?.restMs).toBe(90 * SECOND);
  });

  test('of a Plan without a spec has no target, and the version is missing', () => {
    const { spec: _, ...plan } = of();
    const { stages, problems } = resolved({ plan, nodes: [node('a')] });
    expect(stages).toMatchObject([{ maxInFlight: 0, restMs: 0, targets: [] }]);
    expect(problems.map(({ code }) => code)).toEqual(['VersionUnknown']);
  });
});

describe('the reason of a Plan', () => {
  const failure = (message: string, reason = 'JobFailed'): CattlePlan => {
    const failed = { type: 'RefitFailedNodes', status: 'True' };
    const more = [{ ...failed, message: `a at ${later(0)}; generation 0` }];
    const { conditions = [], ...status } = running(['host-a'], more) ?? {};
    const [complete, ...others] = conditions;
    const told = { ...complete, type: 'Complete', status: 'False', reason, message };
    return of({}, { ...status, conditions: [told, ...others] });
  };
  const broken = job('a', [{ type: 'Failed', status: 'True', lastTransitionTime: later(0) }]);

  test.each<[string, CattlePlan, Rollout['reason']]>([
    ['is none while nothing failed', of({}, running([])), undefined],
    [
      'is the recorded failure of a node',
      failure('Job s/x failed on Node a: Why: because'),
      { code: 'TargetFailed', message: 'Job s/x failed on Node a: Why: because' },
    ],
    [
      'keeps the code of a node that was not uncordoned after its Job',
      failure('a was not uncordoned within its deadline', 'UncordonTooLong'),
      { code: 'UncordonTooLong', message: 'a was not uncordoned within its deadline' },
    ],
    [
      'is none if the recorded failure is of a node that is no target any more',
      failure('Job s/x failed on Node gone: Why: because'),
      undefined,
    ],
    [
      'is the reason of the abort',
      withAbort(of({}, running([], [ABORTED]))),
      { code: 'Aborted', message: 'wrong image' },
    ],
  ])('%s', (_name, plan, reason) => {
    expect(resolved({ plan, nodes: [node('a')], jobs: [broken] }).reason).toEqual(reason);
  });
});
