/** Shows each field of the JSON and YAML forms, and that they change only if something happened. */

import { expect, test } from 'vitest';
import { withTexts } from '../../../test/support/builders/dialects.ts';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan, ShownStatus, StatusJson } from './json-form.ts';
import { picture } from './picture.ts';
import { render } from './render.ts';

const LOOK = { hasColours: false, size: () => ({ columns: 80, rows: 24 }) };
const update = buildUpdate({
  targets: { controllers: listed('c1'), workers: listed('w1', 'w2', 'w3') },
});
const plan = buildPlan(
  { commands: [{ k0supdate: update }] },
  statusOf(
    'SchedulableWait',
    recorded({ c1: 'SignalCompleted' }),
    recorded({ w1: 'SignalSent', w2: 'SignalPending', w3: 'SignalPending' }, later(30_000)),
  ),
);
const c1 = signalled(
  buildControlNode('c1'),
  { status: 'Completed', timestamp: later(29_000) },
  encodeReport({
    created: later(1000),
    from: 'v1.35.5+k0s.0',
    spent: { Downloading: 1200, Restart: 900 },
  }),
);
const w1 = signalled(buildNode('w1'), {
  created: later(30_000),
  status: 'Restart',
  timestamp: later(40_000),
});

async function look(now: number): Promise<ShownStatus> {
  const plans = await lookAt(
    [plan],
    [c1],
    [w1, buildNode('w2', {}, 'False'), buildNode('w3')],
    now,
  );
  return { leader: { state: 'held', holder: 'abc', since: later(0) }, plans };
}

const UNKNOWN = { ours: false, title: 'unknown' };
const THEIRS = {
  ours: false,
  title: "k0s's own",
  lacks: 'no roll-back, no resumed download, no proof that the node is Ready',
};

const NO_RETURN =
  'controllers cannot go back from v1.36 to v1.35, because etcd may hold objects that v1.35 cannot read: only a backup from before the upgrade brings v1.35 back';

const EXPECTED: StatusJson = {
  leader: { state: 'held', holder: 'abc', since: '2026-11-20T08:00:00Z' },
  plans: [
    {
      dialect: 'autopilot',
      kind: 'Plan',
      name: 'autopilot',
      uid: 'plan-uid',
      id: 'id1',
      created: '2026-11-20T08:00:00Z',
      started: later(1000),
      phase: 'running',
      stages: [
        {
          command: 0,
          role: 'controller',
          version: 'v1.36.3+k0s.2',
          maxInFlight: 1,
          active: false,
          targets: [
            {
              name: 'c1',
              phase: 'done',
              since: '2026-11-20T08:00:29Z',
              began: '2026-11-20T08:00:01Z',
              agent: UNKNOWN,
              from: 'v1.35.5+k0s.0',
              spent: { Downloading: 1200, Restart: 900 },
              wayBack: { state: 'closed', message: NO_RETURN },
            },
          ],
        },
        {
          command: 0,
          role: 'worker',
          version: 'v1.36.3+k0s.2',
          maxInFlight: 1,
          active: true,
          targets: [
            {
              name: 'w1',
              phase: 'working',
              step: 'Restart',
              since: '2026-11-20T08:00:40Z',
              began: '2026-11-20T08:00:30Z',
              agent: THEIRS,
            },
            { name: 'w2', phase: 'pending', since: '2026-11-20T08:00:30Z', agent: UNKNOWN },
            { name: 'w3', phase: 'pending', since: '2026-11-20T08:00:30Z', agent: UNKNOWN },
          ],
        },
      ],
      waits: [
        {
          target: 'w1',
          gate: 'working',
          reason: { code: 'InFlight', message: 'w1 is at Restart' },
          ends: 'the node reports that it is done, or that it failed',
          since: '2026-11-20T08:00:40Z',
          until: '2026-11-20T08:14:45Z',
        },
        {
          gate: 'slots',
          reason: { code: 'NoFreeSlot', message: '2 workers queued (1 at a time)' },
          ends: 'a node in progress is done',
          since: '2026-11-20T08:00:30Z',
          ofStage: true,
        },
      ],
      next: ['w2'],
      wayBack: { state: 'closed', message: `c1: ${NO_RETURN}` },
    },
  ],
};

test('a node that was signalled before its record is in progress, and not next', async () => {
  const w2 = signalled(buildNode('w2'), { created: later(50_000) });
  const [view] = await lookAt([plan], [c1], [w1, w2, buildNode('w3')], T0 + 60_000);
  expect(view?.stages[1]?.targets[1]).toMatchObject({ name: 'w2', phase: 'signalled' });
  expect(view?.next).toEqual(['w3']);
});

test('json is what docs/reference/cli.md describes', async () => {
  expect(JSON.parse(render(await look(T0 + MINUTE), 'json', T0 + MINUTE, LOOK))).toEqual(EXPECTED);
});

test('the JSON form of a plan that has ended is the same hours later, to the byte', async () => {
  const at = async (now: number): Promise<string> => render(await look(now), 'json', now, LOOK);
  expect(await at(T0 + 5 * HOUR)).toBe(await at(T0 + MINUTE));
});

test('a run begins with its first record or signal, not with the creation of its plan', async () => {
  const status = statusOf('SchedulableWait', [], recorded({ w1: 'SignalPending' }, later(HOUR)));
  const [view] = await lookAt([{ ...plan, status }], [], [], T0 + 2 * HOUR);
  expect(view).toMatchObject({ created: later(0), started: later(HOUR) });
});

test('a plan that nobody has taken up yet looks the same at any time', async () => {
  const at = async (now: number): Promise<object> => await lookAt([buildPlan()], [c1], [], now);
  expect(await at(T0 + HOUR)).toEqual(await at(T0 + MINUTE));
});

test('what a node says after its target was recorded as done is no failure of this plan', async () => {
  const failing = signalled(w1, {
    created: later(30_000),
    status: 'Failed',
    timestamp: later(50_000),
  });
  const done = statusOf('Completed', [], recorded({ w1: 'SignalCompleted' }, later(45_000)));
  const [view] = await lookAt([{ ...plan, status: done }], [], [failing], T0 + MINUTE);
  expect(view?.stages[1]?.targets).toEqual([
    { name: 'w1', phase: 'done', since: later(45_000), began: later(30_000), agent: THEIRS },
  ]);
});

test("a node of a plan that k0s's own leader ran ends when the node says so, and not when it was signalled", async () => {
  const [view] = await lookAt(
    [{ ...plan, status: statusOf('Completed', recorded({ c1: 'SignalCompleted' }), []) }],
    [signalled(buildControlNode('c1'), { status: 'Completed', timestamp: later(29_000) })],
    [],
    T0 + HOUR,
  );
  expect(view?.stages[0]?.targets).toMatchObject([{ began: later(1000), since: later(29_000) }]);
  const [, bar] = picture(view as ShownPlan, mediumOf(LOOK));
  expect(bar).toMatch(/28 s$/);
});

test('the YAML form says the same as the JSON form, with one line for each value', () => {
  const text = render({ leader: { state: 'none' }, plans: [] }, 'yaml', T0, LOOK);
  expect(text).toBe('leader:\n  state: none\nplans: []\n');
  const reason = { code: 'NodeNotReady', message: `node ${'x'.repeat(200)} is not Ready` } as const;
  const [first] = EXPECTED.plans;
  if (first === undefined) throw new Error('no plan');
  const long = {
    ...EXPECTED,
    plans: [{ ...withTexts(first), waits: [{ gate: 'node-ready', reason, since: later(0) }] }],
  };
  expect(render(long, 'yaml', T0, LOOK)).toContain(`          message: ${reason.message}\n`);
});

test('plans come in the order of their names, and a plan of another name says what is wrong with it', async () => {
  const other = {
    ...buildPlan(),
    metadata: { name: 'a-plan', uid: 'b', creationTimestamp: later(0) },
  };
  const views = await lookAt([plan, other], [c1], [w1], T0);
  expect(views.map(({ name, reason }) => [name, reason])).toEqual([
    ['a-plan', 'metadata.name: "a-plan" is not supported; use "autopilot"'],
    ['autopilot', undefined],
  ]);
});

test('nothing that a node wrote about itself steers the terminal of who looks', async () => {
  const escape = String.fromCharCode(0x1b);
  const failing = signalled(
    w1,
    { created: later(30_000), status: 'Failed', timestamp: later(50_000) },
    encodeReport({
      created: later(30_000),
      from: `v1${escape}[8m`,
      reason: `no${escape}[2J\nroom`,
    }),
  );
  const [view] = await lookAt([plan], [c1], [failing], T0 + MINUTE);
  expect(view?.stages[1]?.targets[0]).toMatchObject({
    from: 'v1\uFFFD[8m',
    failure: 'no\uFFFD[2J room',
  });
  expect(view?.reason).toBe('w1: no\uFFFD[2J room');
});
