/** Shows the picture of plans that are over, to the letter: axis, bars, shades and gaps. */
import { expect, test } from 'vitest';
import { later } from '../../../test/builders/times.ts';
import { mediumOf } from '../output.ts';
import { picture } from './picture.ts';
import type { PlanView, TargetView } from './view.ts';

const medium = (columns: number) =>
  mediumOf({ hasColours: false, size: () => ({ columns, rows: 24 }) });
const S = 1000;

function view(
  targets: readonly Partial<TargetView>[],
  phase: PlanView['phase'] = 'done',
): PlanView {
  const own = targets.map(
    (target): TargetView => ({ name: 'w1', phase: 'done', since: later(0), ...target }),
  );
  const stage = {
    command: 0,
    role: 'worker',
    version: 'v2',
    maxInFlight: 1,
    active: false,
    targets: own,
  } as const;
  const plan = {
    dialect: 'autopilot',
    kind: 'Plan',
    name: 'p',
    uid: 'u',
    id: 'i',
    created: later(0),
    phase,
  };
  return { ...plan, stages: [stage], waits: [], next: [] };
}

const spent = {
  Downloading: 4 * S,
  Cordoning: 2 * S,
  ApplyingUpdate: 2 * S,
  Restart: 10 * S,
  UnCordoning: 2 * S,
};

test('one bar a node on a common axis: steps as shades, waits as gaps', () => {
  const targets = [
    { name: 'c1', began: later(0), since: later(20 * S), spent },
    {
      name: 'worker2',
      began: later(20 * S),
      since: later(40 * S),
      spent: { Downloading: 10 * S, Cordoning: 4 * S },
    },
    {
      name: 'w3',
      phase: 'failed',
      began: later(30 * S),
      since: later(40 * S),
      spent: { Restart: 10 * S },
    },
  ] as const;
  expect(picture(view(targets, 'failed'), medium(59))).toEqual([
    '          0 s ─────────────────────────────── 40 s',
    '● c1      ░░░░▒▒▓▓██████████▞▞                      20 s',
    '● worker2                     ░░░░░░░░░░▒▒▒▒······  20 s',
    '✗ w3                                    ██████████  10 s',
    '          ░=download ▒=drain ▓=apply █=restart ▞=uncordon',
    '          ·=wait',
  ]);
});

test('never wider than 80 columns, and nothing where it does not fit', () => {
  const target = { began: later(0), since: later(20 * S), spent };
  for (const columns of [40, 80, 200, Number.POSITIVE_INFINITY]) {
    const lines = picture(view([target]), medium(columns));
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(
      Math.min(78, columns - 2),
    );
  }
  expect(picture(view([target]), medium(26))).toEqual([]);
  expect(picture(view(Array.from({ length: 31 }, () => target)), medium(80))).toEqual([]);
});

test('an agent that reports no steps, and a step that is shorter than a column', () => {
  const targets = [
    { name: 'w1', began: later(0), since: later(60 * S) },
    { name: 'w2', began: later(60 * S), since: later(60 * S), spent: { Restart: 0 } },
  ];
  const [, first, second] = picture(view(targets), medium(42));
  expect(first).toMatch(/^● w1 ▓+ {2}1 min$/);
  expect(second).toMatch(/^● w2 {2,}█ {2}0 ms$/);
});

test('nothing of a plan that runs, and nothing of nodes that never began', () => {
  expect(picture(view([{ began: later(0), since: later(S) }], 'running'), medium(80))).toEqual([]);
  expect(picture(view([{}]), medium(80))).toEqual([]);
});
