/** Shows that status and why list the held nodes, and say what to do about the nodes that a plan has left out. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import type { Node } from '../../kube/resources.ts';
import { HOLD_ANNOTATION, type Hold } from '../../signal/holds.ts';
import { retrySkipped } from '../controls/retry-skipped.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownStatus } from './json-form.ts';
import { inspect, shownAt } from './observe.ts';
import { render } from './render.ts';

const NOW = T0 + 10 * MINUTE;
const LOOK = { hasColours: false, size: () => ({ columns: 200, rows: 24 }) };
const NAMES = ['w1', 'w2', 'w3'];
const update = buildUpdate({ targets: { workers: listed(...NAMES) } });

type Holds = Readonly<Record<string, Hold>>;

function nodesWith(holds: Holds): Node[] {
  return NAMES.map((name) => {
    const node = buildNode(name);
    const hold = holds[name];
    const annotations = hold === undefined ? {} : { [HOLD_ANNOTATION]: JSON.stringify(hold) };
    return { ...node, metadata: { ...node.metadata, annotations } };
  });
}

function planWith(state: string, states: Readonly<Record<string, string>>) {
  return buildPlan({ commands: [{ k0supdate: update }] }, statusOf(state, [], recorded(states)));
}

async function look(
  state: string,
  states: Readonly<Record<string, string>>,
  holds: Holds,
): Promise<ShownStatus> {
  const plans = await lookAt([planWith(state, states)], [], nodesWith(holds), NOW);
  return { leader: { state: 'held', holder: 'abc', since: later(0) }, plans };
}

const PENDING = { w1: 'SignalPending', w2: 'SignalPending', w3: 'SignalPending' };
const ANN: Hold = { by: 'ann', reason: 'disk', since: later(0), until: later(HOUR) };
const BEN: Hold = { by: 'ben', since: later(0) };
const HOLDS: Holds = { w1: ANN, w3: BEN };

test('every held node has a line, and none of them is next', async () => {
  const status = await look('SchedulableWait', PENDING, HOLDS);
  const [plan] = status.plans;
  expect(plan?.next).toEqual(['w2']);
  expect(plan?.stages[1]?.targets.map(({ held }) => held)).toEqual([ANN, undefined, BEN]);
  const lines = [
    `  held    w1 is held by ann: disk (ends at ${later(HOUR)}, or with refit unhold w1)`,
    '          w3 is held by ben (ends with refit unhold w3)',
  ].join('\n');
  expect(render(status, 'text', NOW, LOOK)).toContain(lines);
  const why = whyLines(status, undefined, NOW, mediumOf(LOOK)).join('\n');
  expect(why).toContain(lines);
});

test('a held node does not queue for a slot', async () => {
  const moving = { w1: 'SignalSent', w2: 'SignalPending', w3: 'SignalPending' };
  const waitsFor = async (holds: Holds): Promise<string[]> => {
    const { plans } = await look('SchedulableWait', moving, holds);
    return plans.flatMap(({ waits }) => waits.map(({ reason }) => reason.message));
  };
  expect(await waitsFor({})).toContain('2 workers queued (1 at a time)');
  expect(await waitsFor({ w3: BEN })).toContain('1 worker queued (1 at a time)');
  expect((await waitsFor({ w2: BEN, w3: BEN })).join()).not.toContain('queued');
});

test('no node is next if only held nodes are left', async () => {
  const holds = { ...HOLDS, w2: { reason: 'x' } };
  const status = await look('SchedulableWait', PENDING, holds);
  expect(status.plans[0]?.next).toEqual([]);
  expect(render(status, 'text', NOW, LOOK)).not.toMatch(/ next /);
});

test('a hold that is over is not shown', async () => {
  const status = await look('SchedulableWait', PENDING, {
    w1: { by: 'ann', until: later(MINUTE) },
  });
  expect(status.plans[0]?.next).toEqual(['w1']);
  expect(render(status, 'text', NOW, LOOK)).not.toContain('held');
});

const LEFT_OUT = { w1: 'SignalSkipped', w2: 'SignalCompleted', w3: 'SignalSkipped' };

test.each([
  ['Completed', 'while it runs no more'],
  ['SchedulableWait', 'while it runs'],
])(
  'nodes that a plan in state %s has left out: %s, the advice names the command',
  async (state) => {
    const status = await look(state, LEFT_OUT, {});
    const advice = 'Left out: w1, w3. To upgrade them, run: refit retry --skipped';
    expect(render(status, 'text', NOW, LOOK)).toContain(advice);
    for (const node of [undefined, 'w1'])
      expect(whyLines(status, node, NOW, mediumOf(LOOK)).join('\n')).toContain(advice);
    expect(whyLines(status, 'w1', NOW, mediumOf(LOOK)).join('\n')).toContain(
      'the plan left it out: w1 could not be drained, or was held or pinned then',
    );
  },
);

test('nodes that were left out and are still held: the hold ends first', async () => {
  const status = await look('Completed', LEFT_OUT, HOLDS);
  expect(render(status, 'text', NOW, LOOK)).toContain(
    'To upgrade them, run refit unhold for each held node, then run: refit retry --skipped',
  );
  const why = whyLines(status, 'w1', NOW, mediumOf(LOOK)).join('\n');
  expect(why).toContain('the plan left it out: w1 is held by ann: disk');
});

test('refit retry --skipped names the nodes that are still held', async () => {
  const plan = planWith('Completed', LEFT_OUT);
  const seen = {
    dialect: autopilot,
    plans: () => [plan],
    world: buildWorld([], nodesWith({ w1: ANN })),
  };
  const inspection = await inspect(seen, plan, buildViewParts(), NOW);
  const { said } = retrySkipped({ ...inspection, view: shownAt(inspection, NOW) }, NOW);
  expect(said).toEqual([
    'w1, w3 of Plan autopilot (id1) will be tried again.',
    'A node starts when the nodes before it have started and its gates pass.',
    'w1 is still held: it does not start before `refit unhold w1`.',
  ]);
});

test('a decision of people has its own line, and is no warning', async () => {
  const status = await look('SchedulableWait', PENDING, {});
  const sentence = 'wave 2 is approved, says ann';
  const plans = status.plans.map((plan) => ({ ...plan, decided: [sentence] }));
  const texts = [
    render({ ...status, plans }, 'text', NOW, LOOK),
    ...[undefined, 'w1'].map((node) =>
      whyLines({ ...status, plans }, node, NOW, mediumOf(LOOK)).join('\n'),
    ),
  ];
  for (const text of texts) {
    expect(text).toMatch(/^ *decided +wave 2 is approved, says ann$/m);
    expect(text).not.toContain('warning');
  }
});
