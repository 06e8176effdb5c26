/** Shows the exact picture of ended plans: axis, bars, shades and gaps. */

import { expect, test } from 'vitest';
import { textsOf } from '../../../test/support/builders/dialects.ts';
import { later } from '../../../test/support/clock/times.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan, TargetJson } from './json-form.ts';
import { picture } from './picture.ts';

const medium = (columns: number) =>
  mediumOf({ hasColours: false, size: () => ({ columns, rows: 24 }) });
const S = 1000;

function view(
  targets: readonly Partial<TargetJson>[],
  phase: ShownPlan['phase'] = 'done',
  dialect = 'autopilot',
): ShownPlan {
  const own = targets.map(
    (target): TargetJson => ({ name: 'w1', phase: 'done', since: later(0), ...target }),
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
    dialect,
    texts: textsOf(dialect),
    kind: 'Plan',
    name: 'p',
    uid: 'u',
    id: 'i',
    created: later(0),
    phase,
  };
  return { ...plan, stages: [stage], waits: [], situations: [], next: [] };
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

test('the time in which a node of k0s goes back is a step of its own, and no wait', () => {
  const target = {
    phase: 'failed',
    began: later(0),
    since: later(20 * S),
    spent: { Restart: 10 * S, RollingBack: 10 * S },
  } as const;
  expect(picture(view([target], 'failed'), medium(42)).slice(1)).toEqual([
    '✗ w1 ██████████████▚▚▚▚▚▚▚▚▚▚▚▚▚▚  20 s',
    '     █=restart ▚=roll back',
  ]);
});

test('a rest that is shorter than the second in which an end is recorded is no wait', () => {
  const target = { began: later(0), since: later(20 * S), spent: { Restart: 19_001 } };
  expect(picture(view([target]), medium(42)).at(-1)).toBe('     █=restart');
  const longer = { ...target, spent: { Restart: 19_000 } };
  expect(picture(view([longer]), medium(42)).at(-1)).toBe('     █=restart ·=wait');
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
  expect(first).toMatch(/^● w1 ■+ {2}1 min$/);
  expect(second).toMatch(/^● w2 {2,}█ {2}0 ms$/);
});

test('no bar for a node of which nothing says when it ended', () => {
  const targets = [
    { name: 'w1', began: later(0), since: later(60 * S) },
    { name: 'w2', phase: 'failed', step: 'Restart', began: later(S), since: later(S) },
  ] as const;
  const lines = picture(view(targets, 'failed'), medium(42));
  expect(lines.join('\n')).not.toMatch(/w2|0 ms/);
});

test('the steps of a run over SSH have the words of what they do: a drain is no "apply"', () => {
  const target = {
    began: later(0),
    since: later(40 * S),
    spent: { Stage: 10 * S, Drain: 10 * S, Kubeadm: 10 * S, Kubelet: 8 * S, Verify: 2 * S },
  };
  expect(picture(view([target], 'done', 'kubeadm'), medium(42)).slice(1)).toEqual([
    '● w1 ░░░░░░░▒▒▒▒▒▒▒▓▓▓▓▓▓▓██████◇  40 s',
    '     ░=download ▒=drain ▓=apply',
    '     █=restart ◇=verify',
  ]);
});

test.each([
  ['Cordoning', 'autopilot', 'Downloading', '▒', 'drain'],
  ['Drain', 'kubeadm', 'Stage', '▒', 'drain'],
  ['the hook of a host', 'kubeadm', 'Stage', '■', 'at work'],
])(
  'the last time of a node that stopped at %s, of a plan of %s, is no "wait"',
  (step, dialect, first, shade, word) => {
    const target = {
      phase: 'failed',
      step,
      began: later(0),
      since: later(20 * S),
      spent: { [first]: 10 * S },
    } as const;
    const lines = picture(view([target], 'failed', dialect), medium(42)).join('\n');
    expect(lines).toMatch(new RegExp(`░+${shade}+ `));
    expect(lines).toContain(`${shade}=${word}`);
    expect(lines).not.toContain('wait');
  },
);

test('an agent that reports no steps beside one that does: neither word stands for both', () => {
  const targets = [
    { name: 'w1', began: later(0), since: later(20 * S) },
    { name: 'w2', began: later(0), since: later(20 * S), spent },
  ];
  const lines = picture(view(targets), medium(59)).join('\n');
  expect(lines).toContain('▓=apply');
  expect(lines).toMatch(/■=at\s+work/);
});

test('nothing of a plan that runs, and nothing of nodes that never began', () => {
  expect(picture(view([{ began: later(0), since: later(S) }], 'running'), medium(80))).toEqual([]);
  expect(picture(view([{}]), medium(80))).toEqual([]);
});

test('the time of an agent that never answered is drawn as a wait, not as work', () => {
  const times = { began: later(0), since: later(20 * S) };
  const targets = [
    { name: 'w1', ...times, phase: 'failed', failureReason: 'DeadlineExceeded' },
    { name: 'w2', ...times, phase: 'failed', failureReason: 'TargetFailed' },
  ] as const;
  const [, silent = '', failed = ''] = picture(view(targets, 'failed'), medium(80));
  expect(silent).toMatch(/^ *✗ w1 ·+ /);
  expect(failed).toMatch(/^ *✗ w2 ■+ /);
});
