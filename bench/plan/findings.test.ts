/** Tests the values of which the figures of a plan are made, on a run that can be checked by hand. */
import { expect, test } from 'vitest';
import { planFindings } from './findings.ts';
import type { PlanRun } from './measure.ts';

const MEMORY = { rss: 50, peak: 60, privateDirty: 10 };

function seen(at: number, name: string, status = '') {
  return { at, name, status, planId: 'p' };
}

/**
 * A run with one controller and two workers. A download comes first, and each restart takes 1 s. The workers are
 * upgraded at the same time.
 */
const RUN: PlanRun = {
  createdAt: 1000,
  completedAt: 3400,
  sightings: [
    seen(1100, 'c1'),
    seen(2150, 'c1', 'Completed'),
    seen(2190, 'w1'),
    seen(2210, 'w2'),
    seen(3290, 'w1', 'Completed'),
    seen(3390, 'w2', 'Completed'),
  ],
  hosts: (['c1', 'w1', 'w2'] as const).map((name) => ({
    name,
    role: name === 'c1' ? 'controller' : 'worker',
    download: 10,
    down: 700,
    start: 300,
  })),
  calls: [
    { side: 'agents on workers', verb: 'update', resource: 'nodes', calls: 12, refused: 0 },
    { side: 'controller', verb: 'update', resource: 'plans/status', calls: 6, refused: 1 },
  ],
  agents: [{ ...MEMORY, rss: 70 }, MEMORY, { ...MEMORY, rss: 40 }],
  controller: { ...MEMORY, rss: 80 },
  bareNode: { ...MEMORY, rss: 40 },
  echoes: [5, 4, 6],
  apiGaps: { plan: [900, 1100], bare: 1000 },
};

test('each figure is what its name says', () => {
  const { figures } = planFindings(RUN);
  expect(Object.fromEntries(figures.map(({ key, value }) => [key, value]))).toEqual({
    'plan.mutatingCallsPerNode': 6,
    'plan.nextNodeLatencyMsP50': 40,
    'plan.nextNodeLatencyMsP99': 60,
    'plan.orchestrationRatio': 2400 / 2010,
    'plan.apiUnavailableRatio': 1.1,
    'agent.idleRssMiB': 50,
    'agent.idlePrivateMiB': 10,
    'controller.rssMiB': 80,
  });
});

test('each ratio shows its two sides, every other figure something beside it', () => {
  const { figures } = planFindings(RUN);
  expect(figures.map(({ madeOf }) => madeOf)).toEqual([
    '18 calls ÷ 3 nodes',
    '8 × one write seen by a watch (5 ms)',
    '12 × one write seen by a watch (5 ms)',
    '2.400 s from creation to Completed ÷ 2.010 s of one download and the restarts',
    '1.100 s without an answer from one API server ÷ 1.000 s of a bare restart',
    'median of 3 agents; 1.25 × a Node process that does nothing (40 MiB)',
    'private dirty; 1 × that Node process (10 MiB)',
    '2 × a Node process that does nothing (40 MiB)',
  ]);
});

test('the details count every call and every wait', () => {
  const { details } = planFindings(RUN);
  const [calls, time] = details;
  expect(calls?.rows.map((row) => row.at(-3))).toEqual(['12', '6']);
  expect(time?.rows.slice(-3)).toEqual([
    ['plan created → first signal', '1', '0.100 s', '0.100 s', '0.100 s'],
    ['a node completed → the next is signalled', '2', '0.040 s', '0.050 s', '0.060 s'],
    ['last node completed → plan Completed', '1', '0.010 s', '0.010 s', '0.010 s'],
  ]);
});
