/** Shows that a plan with thousands of workers fits on one screen, and that stuck workers are named. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, selected } from '../../../test/support/builders/plans.ts';
import type { OriginalSignal } from '../../../test/support/builders/signals.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Node } from '../../kube/resources.ts';
import { render } from './render.ts';

const NAMES = Array.from({ length: 5000 }, (_, index) => `node-${String(index).padStart(4, '0')}`);
const TERMINAL = { hasColours: false, size: () => ({ columns: 80, rows: 24 }) };
const NOW = T0 + 30 * MINUTE;

/** Renders a plan with 3,000 done targets, 500 slots and `inFlight` targets in progress. The other targets wait. */
async function textOf(
  inFlight: number,
  signals: (index: number) => OriginalSignal,
  notReady = new Set<number>(),
) {
  const states = NAMES.map((name, index): [string, string] => [name, stateOf(index, inFlight)]);
  const workers = NAMES.map((name, index): Node => {
    const node = buildNode(name, {}, notReady.has(index) ? 'False' : 'True');
    return index >= 3000 && index < 3000 + inFlight ? signalled(node, signals(index)) : node;
  });
  const update = buildUpdate({
    targets: { workers: { ...selected(), limits: { concurrent: 500 } } },
  });
  const plan = buildPlan(
    { commands: [{ k0supdate: update }] },
    statusOf('SchedulableWait', [], recorded(Object.fromEntries(states))),
  );
  const plans = await lookAt([plan], [], workers, NOW);
  return render({ leader: { state: 'unknown' }, plans }, 'text', NOW, TERMINAL)
    .trimEnd()
    .split('\n');
}

function stateOf(index: number, inFlight: number): string {
  if (index < 3000) return 'SignalCompleted';
  return index < 3000 + inFlight ? 'SignalSent' : 'SignalPending';
}

test('of 500 nodes in progress status tells how many are at which step, and which has been there longest', async () => {
  const signals = (index: number): OriginalSignal => {
    if (index % 3 === 0) return {};
    const timestamp = later(index === 3121 ? 2 * MINUTE : 20 * MINUTE);
    return { status: index % 3 === 1 ? 'Downloading' : 'Completed', timestamp };
  };
  const verifying = new Set(NAMES.map((_, index) => index).filter((index) => index % 3 === 2));
  expect(await textOf(500, signals, verifying)).toEqual([
    'Plan autopilot (id1)  running 3000/5000 for 30 min, 60 %  to v1.36.3+k0s.2',
    '  workers  3000/5000  500 in progress, 1500 pending',
    '  NODE                    STATE                FOR          MESSAGE',
    '  node-3000 and 166 more  signalled            29 min 59 s',
    '      its agent has not answered yet',
    '  node-3121 and 166 more  Downloading          28 min',
    '  node-3002 and 165 more  upgraded, verifying  10 min',
    '      node node-3002 is not Ready (NodeNotReady)',
    '  node-3500 and 499 more  next',
    '  waits   1500 workers queued (500 at a time) (29 min 59 s)',
    '  ends    when the node is Ready',
    "  agents  k0s's own on node-3001, node-3002, node-3004, node-3005, node-3007,",
    '            node-3008, node-3010, node-3011 and 325 more: no roll-back, no',
    '            resumed download, no proof that the node is Ready',
  ]);
});

test('of 1,000 nodes that are not Ready status tells their number and the first of them', async () => {
  const notReady = new Set(Array.from({ length: 1000 }, (_, index) => 3000 + index));
  expect((await textOf(0, () => ({}), notReady)).slice(2)).toEqual([
    '  NODE                    STATE  FOR  MESSAGE',
    '  node-4000 and 499 more  next',
    '  waits   1000 nodes wait (NodeNotReady, 29 min 59 s): node-3000, node-3001,',
    '            node-3002, node-3003, node-3004, node-3005, node-3006, node-3007 and',
    '            992 more',
    '          500 workers queued (500 at a time) (29 min 59 s)',
    '  ends    when the node is Ready',
  ]);
});

test('of a hundred failures status tells the first ones, and where the others are told', async () => {
  const lines = await textOf(100, () => ({ status: 'Failed', timestamp: later(MINUTE) }));
  expect(lines[1]).toBe('  workers  3000/5000  100 failed, 1900 pending');
  expect(lines.filter((line) => /^ {2}node-3\d+ +failed/.test(line))).toHaveLength(8);
  expect(lines).toContainEqual(
    expect.stringMatching(/^ {2}and 92 more +failed +see refit status -o wide$/),
  );
  expect(lines.length).toBeLessThan(24);
});
