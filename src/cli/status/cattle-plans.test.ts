/** Proves that status says of Rancher's Plans what is true of them, and what their user can do. */
import { expect, test } from 'vitest';
import { buildCattlePlan, type CattleSpec } from '../../../test/builders/cattle-plans.ts';
import { buildNode } from '../../../test/builders/nodes.ts';
import { later, MINUTE, T0 } from '../../../test/builders/times.ts';
import { buildViewParts } from '../../../test/builders/views.ts';
import { buildWorldOf } from '../../../test/builders/worlds-of-kinds.ts';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import { cattleView } from '../../dialects/cattle/dialect.ts';
import { latestHash } from '../../dialects/cattle/latest.ts';
import { jobs, nodes, pods } from '../../kube/resources.ts';
import { pause } from '../controls/pause.ts';
import { inspect, observe, viewAt } from './observe.ts';
import { render } from './render.ts';
import { movingRows, sentenceOf } from './sentences.ts';

const NOW = T0 + 10 * MINUTE;
const hosts = ['a', 'b'].map((name) => buildNode(name, { labels: { 'kubernetes.io/hostname': name } }));
const HASH = latestHash(buildCattlePlan('p'), 'v1.2.3', []);
const channel = { version: '', channel: 'https://example.com' };

type Told = [type: string, status: string, reason: string, message?: string];
const VALID: Told[] = [['Validated', 'True', 'PlanIsValid']];
const NOT_READY: Told = ['Complete', 'False', 'NotReady', 'plan is not valid and resolved'];
const FAILS = `the channel says no version since ${later(0)}: no route`;
const UNRESOLVED: Told[] = [['LatestResolved', 'False', 'Error', 'cannot resolve plan: missing channel and version']];
const RUNNING = ['Complete False SyncJob', 'Validated True PlanIsValid', 'LatestResolved True Version'].map((each) => {
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
      'to do   Not started. Fix the Plan, its Secret or its channel: it then goes on by itself.',
    ],
  ],
  [
    'its channel was not asked yet',
    channel,
    [],
    {},
    ['why     waiting for the version of the channel', 'to do   Fix the Plan, its Secret or its channel'],
  ],
  [
    'its channel fails later',
    channel,
    [...VALID, ['LatestResolved', 'True', 'Channel'], ['RefitChannelFails', 'True', 'ResolveFailed', FAILS]],
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
      'keeping a slot: a (10 min)',
      'Fix the cause (see the log of its Job), then run: refit retry a --plan cattle/system-upgrade/p',
    ],
  ],
])('%s', async (_name, spec, told, status, lines) => {
  const conditions = told.map(([type, is, reason, message = '']) => ({ type, status: is, reason, message }));
  const plan = { ...buildCattlePlan('p', spec), status: { ...status, conditions } };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const plans = await observe({ dialect: cattleView, plans: () => [plan], world }, buildViewParts(), NOW);
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
  const conditions = [NOT_READY, ...VALID, ...UNRESOLVED].map(([type, status, reason, message = '']) => ({
    type,
    status,
    reason,
    message,
  }));
  const plan = { ...buildCattlePlan('p', spec), status: { conditions } };
  const view = viewAt(await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW), NOW);
  expect([view.phase, view.goesOn]).toEqual(['invalid', goesOn]);
});

test('a node that gets its Job next has no age', async () => {
  const status = { latestVersion: 'v1.2.3', latestHash: HASH, applying: ['a'], conditions: RUNNING };
  const plan = { ...buildCattlePlan('p'), status };
  const world = buildWorldOf([nodes, hosts], [jobs, []], [pods, []]);
  const view = viewAt(await inspect({ dialect: cattleView, world }, plan, buildViewParts(), NOW), NOW);
  expect(movingRows(view, NOW).map(sentenceOf)).toEqual(['a starting']);
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
  const view = viewAt(inspection, NOW);
  expect(view.phase).toBe('invalid');
  expect(pause({ ...inspection, view }, NOW).said[0]).toBe('Plan system-upgrade/p is paused.');
});
