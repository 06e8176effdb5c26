/** Shows what a report contains for a failed plan and for a deleted plan, in each output format. */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import type { Event } from '../../kube/resources.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { markdownOf } from './markdown.ts';
import { type Report, reportOf, reportOfDeleted, saidOf, stepsOf } from './report.ts';
import { svgOf } from './svg.ts';

const NOW = T0 + 5 * MINUTE;
const HOSTILE = '<script>alert(1)</script>';
const update = buildUpdate({
  targets: { controllers: listed('c1'), workers: listed('w1', 'w2', 'w3') },
});
const plan = buildPlan(
  { commands: [{ k0supdate: update }] },
  statusOf(
    'SchedulableWait',
    recorded({ c1: 'SignalCompleted' }),
    recorded({ w1: 'SignalApplyFailed', w2: 'SignalSent', w3: 'SignalPending' }, later(100_000)),
  ),
);
const c1 = signalled(
  buildControlNode('c1'),
  { status: 'Completed', timestamp: later(29_000) },
  encodeReport({
    created: later(1000),
    from: 'v1.35.5+k0s.0',
    spent: { Downloading: 8000, Restart: 20_000 },
  }),
);
const w1 = signalled(
  buildNode('w1'),
  { created: later(30_000), status: 'Failed', timestamp: later(90_000) },
  encodeReport({
    created: later(30_000),
    from: 'v1.35.5+k0s.0',
    spent: { Downloading: 10_000, Restart: 50_000 },
    rolledBack: true,
    reason: HOSTILE,
  }),
);

function eventOf(name: string, at: number, more: Partial<Event> = {}): Event {
  return {
    metadata: { name: `${name}.1`, namespace: 'default' },
    involvedObject: { kind: 'Node', name },
    source: { component: 'refit-controller' },
    reason: 'Signalled',
    message: 'Upgrade started',
    count: 1,
    lastTimestamp: later(at),
    ...more,
  };
}

const EVENTS = [
  eventOf('w2', 60_000, { count: 3 }),
  eventOf('c1', 2000),
  eventOf('w1', 50_000, { source: { component: 'kubelet' } }),
  eventOf('other', 50_000),
  eventOf('w1', 50_000, {
    metadata: { name: 'w1.forged', namespace: 'tenant' },
    involvedObject: { kind: 'Node', name: 'w1', namespace: 'tenant' },
  }),
  eventOf('w1', -MINUTE),
];

async function report(missing: readonly string[] = [], events = EVENTS): Promise<Report> {
  const nodes = [w1, signalled(buildNode('w2'), { created: later(95_000) }), buildNode('w3')];
  const plans = await lookAt([plan], [c1], nodes, NOW);
  const status = { leader: { state: 'held', holder: 'abc', since: later(0) }, plans } as const;
  return reportOf({ status, rollouts: [], missing, events }, NOW);
}

test('the report has the sums of a plan with a node that failed', async () => {
  const { versions, steps, longest, failures, rolledBack, plan: shown } = await report();
  expect(versions).toContainEqual({
    role: 'controller',
    before: 'v1.35.5+k0s.0',
    after: 'v1.36.3+k0s.2',
    nodes: 1,
    done: 1,
  });
  expect(shown.report?.find(({ heading }) => heading === 'Versions')?.lines).toContain(
    '1 worker: from v1.35.5+k0s.0 to v1.36.3+k0s.2, of which 0 are done',
  );
  expect(steps.slice(0, 3)).toEqual([
    { step: 'wait', ms: 215_000, nodes: 2 },
    { step: 'restart', ms: 70_000, nodes: 2 },
    { step: 'download', ms: 18_000, nodes: 2 },
  ]);
  expect(longest.slice(0, 3)).toEqual([
    { node: 'w2', ms: 205_000 },
    { node: 'w1', ms: 70_000 },
    { node: 'c1', ms: 28_000 },
  ]);
  expect(failures.map(({ node }) => node)).toEqual(['w1']);
  expect(rolledBack).toEqual(['w1']);
});

test('a node that started before an edit of the plan counts with the version from before the edit', async () => {
  const plans = (await lookAt([plan], [c1], [w1], NOW)).map((each) => ({
    ...each,
    stages: each.stages.map((stage) => ({
      ...stage,
      targets: stage.targets.map((target) => ({ ...target, asked: 'v1.36.1+k0s.0' })),
    })),
  }));
  const status = { leader: { state: 'held', holder: 'abc', since: later(0) }, plans } as const;
  const { versions } = reportOf({ status, rollouts: [], missing: [], events: [] }, NOW);
  expect(new Set(versions.map(({ after }) => after))).toEqual(new Set(['v1.36.1+k0s.0']));
});

test('an Event about a Node in the namespace of the plan is not from Refit, which writes it to default', async () => {
  const plans = await lookAt([plan], [c1], [w1], NOW);
  const status = { leader: { state: 'held', holder: 'abc', since: later(0) }, plans } as const;
  const inTenant = { ...status, plans: plans.map((each) => ({ ...each, namespace: 'tenant' })) };
  const { events } = reportOf({ status: inTenant, rollouts: [], missing: [], events: EVENTS }, NOW);
  expect(events.map(({ about }) => about)).toEqual(['c1', 'w2']);
});

test('a node that takes steps of the same word counts once', () => {
  const apply = [0, 20].map((from) => ({ word: 'apply', from, to: from + 10 }));
  const steps = [...apply, { word: 'restart', from: 30, to: 35 }];
  expect(stepsOf([{ steps }, { steps }])).toEqual([
    { step: 'apply', ms: 40, nodes: 2 },
    { step: 'restart', ms: 10, nodes: 2 },
  ]);
});

test('Events of Refit about nodes of the plan since it began, the earliest first', async () => {
  const { events } = await report();
  expect(events.map(({ about, at, count }) => [about, at, count])).toEqual([
    ['c1', later(2000), 1],
    ['w2', later(60_000), 3],
  ]);
});

test('an Event that counts what happened before the run has no count, because it would be wrong for this run', async () => {
  const first = eventOf('w2', 60_000, { count: 2, firstTimestamp: later(-MINUTE) });
  const again = eventOf('w1', 61_000, { count: 2, firstTimestamp: later(3000) });
  const counted = await report([], [first, again]);
  expect(counted.events.map(({ count }) => count)).toEqual([undefined, 2]);
  const text = markdownOf(counted);
  expect(text).toContain('w2: Signalled. Upgrade started\n');
  expect(text).toContain('w1: Signalled. Upgrade started (2 times)\n');
});

test('nodes with something to explain have what refit why says of them', async () => {
  const { plan: shown } = await report();
  const explained = shown.nodes.filter(({ why }) => why !== undefined && why.length > 0);
  expect(explained.map(({ name }) => name)).toEqual(['w1', 'w2']);
});

test.each([
  ['> quoted', '&gt; quoted'],
  ['- one', String.raw`\- one`],
  ['+ one', String.raw`\+ one`],
  ['12. one', String.raw`12\. one`],
  ['12) one', String.raw`12\) one`],
  ['see https://evil.test/', 'see https&#58;//evil.test/'],
  ['see www.evil.test', 'see www&#46;evil.test'],
  ['ask a@evil.test', 'ask a&#64;evil.test'],
  ['w1: 3 - 1 + 2', 'w1: 3 - 1 + 2'],
])('in Markdown, %j makes no list, quotation or link', async (text, expected) => {
  expect(markdownOf(await report([text]))).toContain(`\n* ${expected}\n`);
});

test('of many failed nodes the first 200 are explained', async () => {
  const names = Array.from({ length: 250 }, (_, index) => `n${index}`);
  const many = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets: { workers: listed(...names) } }) }] },
    statusOf(
      'SchedulableWait',
      [],
      recorded(Object.fromEntries(names.map((name) => [name, 'SignalApplyFailed'] as const))),
    ),
  );
  const plans = await lookAt(
    [many],
    [],
    names.map((name) => buildNode(name)),
    NOW,
  );
  const status = { leader: { state: 'unknown' }, plans } as const;
  const { plan: shown } = reportOf({ status, rollouts: [], missing: [], events: [] }, NOW);
  const explained = shown.nodes.filter(({ why }) => why !== undefined);
  expect(explained.map(({ name }) => name)).toEqual(names.slice(0, 200));
});

test('what could not be read is named in each form', async () => {
  const sentence = 'events is forbidden';
  const denied = await report([sentence]);
  expect(denied.missing).toEqual([sentence]);
  expect(markdownOf(denied)).toContain(`* ${sentence}`);
});

test('text of the cluster is no markup in Markdown and SVG', async () => {
  const read = await report();
  expect(JSON.stringify(read)).toContain(HOSTILE);
  expect(markdownOf(read)).not.toContain('<script>');
  expect(svgOf(read)).not.toContain('<script>');
});

test('SVG has a letter for each step of the picture of refit status', async () => {
  const read = await report();
  const words = ['download', 'drain', 'apply', 'restart', 'uncordon', 'verify', 'at work'];
  const steps = words.map((word, at) => ({ word, from: at * MINUTE, to: (at + 1) * MINUTE }));
  const [node] = read.plan.nodes.map((each) => ({ ...each, steps }));
  const drawn = svgOf({ ...read, plan: { ...read.plan, nodes: node === undefined ? [] : [node] } });
  for (const word of words) expect(drawn).toContain(` = ${word}`);
  expect(drawn.match(/class="letter"/g)).toHaveLength(words.length);
});

test('SVG has one lane for each node, and says what was left out', async () => {
  const read = await report();
  for (const name of ['c1', 'w1', 'w2', 'w3']) expect(svgOf(read)).toContain(` ${name}<`);
  const [first] = read.plan.nodes;
  if (first === undefined) throw new Error('the report has no node');
  const nodes = Array.from({ length: 1200 }, (_, index) => ({ ...first, name: `n${index}` }));
  const crowd = svgOf({ ...read, plan: { ...read.plan, nodes } });
  expect(crowd).toContain('200 more nodes are not drawn');
  expect(crowd).not.toContain(' n1000<');
});

test('a deleted plan has its runs and their failures', () => {
  const counts = { total: 8, done: 7, failed: 1, inProgress: 0, pending: 0, skipped: 0 };
  const rollout: NodeRollout = {
    metadata: { name: 'autopilot', labels: { [DIALECT_LABEL]: 'autopilot' } },
    spec: {
      plan: { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan', name: 'autopilot' },
    },
    status: {
      phase: 'failed',
      planDeleted: later(60_000),
      history: [
        {
          id: 'one',
          version: 'v1',
          started: later(0),
          ended: later(50_000),
          phase: 'failed',
          counts,
          failures: [{ node: 'w1', message: 'no space left' }],
        },
      ],
    },
  };
  const read = reportOfDeleted(rollout, [], NOW);
  expect(read.plan).toMatchObject({ phase: 'failed', done: 7, total: 8, percent: 87 });
  expect(read.failures).toEqual([{ node: 'w1', message: 'no space left' }]);
  expect(markdownOf(read)).toContain(`The plan was deleted at ${later(60_000)}`);
});

test('the report names the trace of the run, if one was sent', () => {
  const none = { versions: [], steps: [], longest: [], failures: [], rolledBack: [], events: [] };
  const traceId = '5b8efff798038103d269b633813fc60c';
  expect(saidOf({ ...none, missing: [], traceId })).toEqual([
    { heading: 'Trace', lines: [traceId] },
  ]);
  expect(saidOf({ ...none, missing: [] })).toEqual([]);
});

test('a long name is cut in the picture, so that it covers neither the state nor the bars; its title has all of it', async () => {
  const read = await report();
  const [node] = read.plan.nodes;
  const name = `ip-10-0-0-1.${'very-long-'.repeat(6)}compute.internal`;
  const state = 'waiting for a slot that is free';
  const nodes = node === undefined ? [] : [{ ...node, name, state }];
  const drawn = svgOf({ ...read, plan: { ...read.plan, nodes } });
  expect(drawn).toContain(`${name}</title>`);
  expect(drawn).toMatch(/<\/title>\S ip-10-0-0-1\.very-…<\/text>/);
  expect(drawn).toContain(`<title>${state}</title>waiting for a s…</text>`);
});
