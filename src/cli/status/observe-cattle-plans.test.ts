/** Proves that the status of Rancher's Plans is correct, and says what the user can do. */

import { expect, test } from 'vitest';
import { buildCattlePlan, type CattleSpec } from '../../../test/support/builders/cattle-plans.ts';
import { withTexts } from '../../../test/support/builders/dialects.ts';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildViewParts } from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { CattleCondition, CattlePlan } from '../../api/cattle/plan.ts';
import { cattleView } from '../../dialects/cattle/plan/cattle-dialect.ts';
import { jobNamesOf } from '../../dialects/cattle/plan/job.ts';
import { latestHash } from '../../dialects/cattle/plan/latest.ts';
import { type Job, jobs, nodes, pods } from '../../kube/resources.ts';
import { toDo } from '../advice/advice.ts';
import { pause } from '../controls/pause-abort.ts';
import { retry } from '../controls/retry.ts';
import type { ShownPlan } from './json-form.ts';
import { inspect, observe, shownAt } from './observe.ts';
import { render } from './render.ts';
import { movingRows, sentenceOf } from './sentences.ts';

const NOW = T0 + 10 * MINUTE;
const hosts = ['a', 'b'].map((name) =>
  buildNode(name, { labels: { 'kubernetes.io/hostname': name } }),
);
const HASH = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const channel = { version: '', channel: 'https://example.com' };

type Told = [type: string, status: string, reason: string, message?: string];
const VALID: Told[] = [['Validated', 'True', 'PlanIsValid']];
const NOT_READY: Told = ['Complete', 'False', 'NotReady', 'plan is not valid and resolved'];
const FAILS = `the channel has returned no version since ${later(0)}: no route`;
const UNRESOLVED: Told[] = [
  ['LatestResolved', 'False', 'Error', 'cannot resolve plan: missing channel and version'],
];
const RUNNING = [
  'Complete False SyncJob',
  'Validated True PlanIsValid',
  'LatestResolved True Version',
].map((each) => {
  const [type = '', status = '', reason = ''] = each.split(' ');
  return { type, status, reason };
});
const FAILED: Told[] = [
  ['Complete', 'False', 'JobFailed', 'Job x failed on Node a: why'],
  ...VALID,
  ['LatestResolved', 'True', 'Version'],
  ['RefitFailedNodes', 'True', 'JobFailed', `a at ${later(0)}; generation 0`],
];

test.each<[string, Partial<CattleSpec>, readonly Told[], CattlePlan['status'], readonly string[]]>([
  [
    'its channel fails from the start',
    channel,
    [NOT_READY, ...VALID, ['LatestResolved', 'False', 'Error', 'no route']],
    {},
    [
      'why     waiting for the version of the channel: no route',
      'to do   Not started. Fix the Plan, its Secret or its channel. The Plan then continues by itself.',
    ],
  ],
  [
    'its channel was not asked yet',
    channel,
    [],
    {},
    [
      'why     waiting for the version of the channel',
      'to do   Fix the Plan, its Secret or its channel',
    ],
  ],
  [
    'its channel fails later',
    channel,
    [
      ...VALID,
      ['LatestResolved', 'True', 'Channel'],
      ['RefitChannelFails', 'True', 'ResolveFailed', FAILS],
    ],
    { latestVersion: 'v1' },
    [`unknown ${FAILS}`],
  ],
  [
    'a Secret is missing, as the leader says',
    { secrets: [{ name: 's', path: 's' }] },
    [NOT_READY, ['Validated', 'False', 'Error', 'secrets "s" not found']],
    {},
    ['why     secrets "s" not found', 'to do   Not started. Fix the Plan, its Secret'],
  ],
  [
    'a Job failed',
    {},
    FAILED,
    { latestVersion: 'v1.2.3', latestHash: HASH, applying: ['a'] },
    [
      'these failed nodes keep a slot: a (10 min)',
      'Fix the cause (see the log of its Job while the Job exists, and the log of the kubelet on the node), then run: refit retry a --plan cattle/system-upgrade/p',
    ],
  ],
])('what status says about a Plan of Rancher if %s', async (_name, spec, told, status, lines) => {
  const conditions = told.map(([type, is, reason, message = '']) => ({
    type,
    status: is,
    reason,
    message,
  }));
  const plan = { ...buildCattlePlan('p', spec), status: { ...status, conditions } };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const plans = await observe(
    { dialect: cattleView, plans: () => [plan], world },
    buildViewParts(),
    NOW,
  );
  const shape = { hasColours: false, size: () => ({ columns: 200, rows: 50 }), advises: true };
  const text = render({ leader: { state: 'none' }, plans }, 'text', NOW, shape);
  for (const line of lines) expect(text).toContain(line);
  expect(text).not.toContain('refused');
  expect(text).not.toContain('(0 s)');
});

test.each<[string, Partial<CattleSpec>, true | undefined]>([
  ['waits for its channel: a watch goes on', channel, true],
  ['has neither version nor channel: a watch ends', { version: '' }, undefined],
])('an invalid Plan that %s', async (_name, spec, goesOn) => {
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const conditions = [NOT_READY, ...VALID, ...UNRESOLVED].map(
    ([type, status, reason, message = '']) => ({
      type,
      status,
      reason,
      message,
    }),
  );
  const plan = { ...buildCattlePlan('p', spec), status: { conditions } };
  const view = shownAt(
    await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW),
    NOW,
  );
  expect([view.phase, view.goesOn]).toEqual(['invalid', goesOn]);
});

test('a node that gets its Job next has no age', async () => {
  const status = {
    latestVersion: 'v1.2.3',
    latestHash: HASH,
    applying: ['a'],
    conditions: RUNNING,
  };
  const plan = { ...buildCattlePlan('p'), status };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const view = shownAt(
    await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW),
    NOW,
  );
  expect(movingRows(view, NOW).map(sentenceOf)).toEqual(['a starting']);
});

const RUNS = {
  metadata: {
    name: jobNamesOf('p', 'a', HASH)[0],
    namespace: 'system-upgrade',
    creationTimestamp: later(2 * MINUTE),
    labels: {
      'upgrade.cattle.io/plan': 'p',
      'upgrade.cattle.io/node': 'a',
      'plan.upgrade.cattle.io/p': HASH,
    },
    ownerReferences: [
      { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan', name: 'p', uid: 'p-uid' },
    ],
  },
};

async function viewWith(job: Job, told: CattleCondition[] = []): Promise<ShownPlan> {
  const status = {
    latestVersion: 'v1.2.3',
    latestHash: HASH,
    applying: ['a'],
    conditions: [...RUNNING, ...told],
  };
  const plan = { ...buildCattlePlan('p', { concurrency: 1 }), status };
  const world = buildWorldOf([nodes, hosts], [jobs, [job]], [pods, []]);
  return shownAt(await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW), NOW);
}

test('nodes are queued since the last Job was made', async () => {
  const { waits } = await viewWith(RUNS);
  expect(waits.filter(({ gate }) => gate === 'slots')).toMatchObject([
    { since: later(2 * MINUTE) },
  ]);
});

test('a node whose Job succeeded, and whose label is refused, is not done and says why', async () => {
  const job = { ...RUNS, status: { conditions: [{ type: 'Complete', status: 'True' } as const] } };
  const refused = 'a: the API server refuses to change its object: nodes "a" is forbidden';
  const phaseIn = ({ stages }: ShownPlan) =>
    stages.flatMap(({ targets }) => targets.map(({ phase }) => phase));
  expect(phaseIn(await viewWith(job))).toEqual(['verifying', 'pending']);
  const view = await viewWith(job, [
    { type: 'RefitStalled', status: 'True', reason: 'Stalled', message: refused },
  ]);
  expect(phaseIn(view)).toEqual(['verifying', 'pending']);
  expect(view.unseen).toBeUndefined();
  expect(view.waits[0]).toMatchObject({
    target: 'a',
    gate: 'write',
    reason: { code: 'TargetRefused', message: refused },
  });
});

test('a Job that somebody suspended does not look as if it starts', async () => {
  const { stages } = await viewWith({ ...RUNS, spec: { suspend: true } });
  expect(stages.flatMap(({ targets }) => targets.map(({ step }) => step))).toEqual([
    'Suspended',
    undefined,
  ]);
});

test('while its channel is down a Plan can be paused: it is not over', async () => {
  const conditions = [NOT_READY, ...VALID].map(([type, is, reason, message = '']) => ({
    type,
    status: is,
    reason,
    message,
  }));
  const plan: CattlePlan = { ...buildCattlePlan('p', channel), status: { conditions } };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const inspection = await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW);
  const view = shownAt(inspection, NOW);
  expect(view.phase).toBe('invalid');
  const said = pause({ ...inspection, view }, NOW).said;
  expect([said[0], said[2]]).toEqual([
    'Plan system-upgrade/p is paused.',
    'No new node starts until `refit resume`.',
  ]);
  // If there are other plans, the printed command must name this plan.
  expect(pause({ ...inspection, view, hasOthers: true }, NOW).said[2]).toBe(
    'No new node starts until `refit resume --plan cattle/system-upgrade/p`.',
  );
});

test('a Plan that was aborted and has ended is neither paused, nor is a node retried where none may start', async () => {
  const conditions = FAILED.map(([type, is, reason, message = '']) => ({
    type,
    status: is,
    reason,
    message,
  }));
  const status = { latestVersion: 'v1.2.3', latestHash: HASH, applying: ['a'], conditions };
  const aborted = { type: 'RefitAborted', status: 'True', reason: 'Aborted', message: 'wrong' };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const given = async (
    spec: Partial<CattleSpec>,
    annotations = {},
    told: CattleCondition[] = [],
  ) => {
    const plan = {
      ...buildCattlePlan('p', spec),
      status: { ...status, conditions: [...conditions, ...told] },
    };
    const controlled = { ...plan, metadata: { ...plan.metadata, annotations } };
    const inspection = await inspect(
      { dialect: cattleView, world },
      controlled,
      buildViewParts(),
      NOW,
    );
    return { ...inspection, view: shownAt(inspection, NOW) };
  };
  const stopped = await given({}, { 'refit.upgrade.cattle.io/abort': 'wrong' }, [aborted]);
  expect(() => pause(stopped, NOW)).toThrow('nothing is left to pause');
  const { said } = retry('a')(await given({ concurrency: 0 }), NOW);
  expect(said).toContain('The plan lets no node start: its concurrency is 0.');
});

test('a node whose Job was refused is not retried: its Plan is corrected', async () => {
  const told: Told[] = [
    ['Complete', 'False', 'ValidationFailed', 'a: Job is invalid'],
    ['RefitFailedNodes', 'True', 'JobFailed', `a refused at ${later(0)}; generation 0`],
  ];
  const conditions = told.map(([type, status, reason, message = '']) => ({
    type,
    status,
    reason,
    message,
  }));
  const status = {
    latestVersion: 'v1.2.3',
    latestHash: HASH,
    conditions: [...RUNNING.slice(1), ...conditions],
  };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const plan: CattlePlan = { ...buildCattlePlan('p'), status };
  const inspection = await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW);
  const refused = 'was refused, and would be refused again: correct the plan (see: refit why a)';
  expect(() => retry('a')({ ...inspection, view: shownAt(inspection, NOW) }, NOW)).toThrow(refused);
});

test('a Plan whose selector meets no Node: correcting it is enough', () => {
  const situations = [{ kind: 'Empty' }];
  const plan = { dialect: 'cattle', phase: 'empty', situations, stages: [], waits: [], next: [] };
  expect(toDo(withTexts(plan) as unknown as ShownPlan)).toEqual([
    'No node was upgraded. Correct the nodeSelector of the Plan, or its concurrency, which must be at least 1. The Plan then continues by itself.',
  ]);
});

const named = (name: string): Partial<CattleSpec> => ({ secrets: [{ name, path: name }] });

test.each<[string, string, Partial<CattleSpec>, Partial<CattleSpec>]>([
  [
    'a drain',
    'spec.drain cannot specify both deleteEmptydirData and deleteLocalData',
    { drain: { deleteLocalData: true, deleteEmptydirData: false } },
    {},
  ],
  ['a Secret that is gone from it', 'secrets "s" not found', named('s'), {}],
  ['a Secret that another one replaced', 'secrets "s" not found', named('s'), named('t')],
])(
  'a Plan that was refused for %s loses the reason before its next record',
  async (_name, old, wrong, corrected) => {
    const told: Told[] = [NOT_READY, ['Validated', 'False', 'Error', old]];
    const conditions = told.map(([type, status, reason, message = '']) => ({
      type,
      status,
      reason,
      message,
    }));
    const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
    const viewWithSpec = async (spec: Partial<CattleSpec>): Promise<ShownPlan> => {
      const plan: CattlePlan = { ...buildCattlePlan('p', spec), status: { conditions } };
      const inspection = await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW);
      return shownAt(inspection, NOW);
    };
    expect((await viewWithSpec(wrong)).reason).toBe(old);
    const shown = JSON.stringify(await viewWithSpec(corrected));
    expect(shown).not.toContain(JSON.stringify(old).slice(1, -1));
  },
);
