/**
 * Computes the figures of the Plans of system-upgrade-controller, and the measured values of which each figure is made.
 */
import { RefitError } from '../../src/util/errors.ts';
import { type Figure, type Findings, formatNumber } from '../figures.ts';
import { median, percentile } from '../statistics.ts';
import { AT_WORK, timeDecision } from './decisions.ts';
import type { CattleRun } from './measure.ts';

export function cattleFindings(run: CattleRun): Findings {
  return {
    figures: [
      wallFigure(run),
      ...latencyFigures(run),
      ...callFigures(run),
      ...processFigures(run),
      decisionFigure(),
    ],
    details: [
      {
        title: 'Mutating calls of the controller, of the last Plan',
        header: ['CALL', 'CALLS', 'A NODE'],
        rows: [...(run.plans.at(-1)?.calls ?? [])].map(([call, calls]) => [
          call,
          String(calls),
          formatNumber(calls / run.nodes),
        ]),
      },
    ],
  };
}

function wallFigure({ nodes, slots, plans, bareSeconds }: CattleRun): Figure {
  const between = bareSeconds.map(
    (seconds, index) => (seconds + (bareSeconds[index + 1] ?? Number.NaN)) / 2,
  );
  const all = plans.map(({ wallSeconds }, index) => ({
    wallSeconds,
    bare: between[index] ?? Number.NaN,
  }));
  const parts = all.map(
    ({ wallSeconds, bare }) => `${formatNumber(wallSeconds)} s ÷ ${formatNumber(bare)} s`,
  );
  return {
    key: 'cattle.planWall1000Ratio',
    value: median(all.map(({ wallSeconds, bare }) => wallSeconds / bare)),
    unit: '×',
    goal: { bound: 'most', limit: 1.15 },
    madeOf: `a Plan of ${nodes} nodes, ${slots} at a time ÷ bare Jobs before and after it: the median of ${parts.join(', ')}`,
  };
}

/**
 * Computes the times from the end of a Job to the creation of the Job that takes its place. The first `slots` Jobs do
 * not take the place of another Job.
 */
function latencyFigures({ slots, plans }: CattleRun): Figure[] {
  const latencies = plans.flatMap(({ times: { created, completed } }) =>
    created.slice(slots).map((at, index) => at - (completed[index] ?? Number.NaN)),
  );
  if (latencies.some((ms) => ms < 0))
    throw new RefitError('REFIT_PLAN_FAILED', `more than ${slots} Jobs at once`);
  const figure = (share: number) => ({
    value: percentile(latencies, share),
    unit: 'ms',
    madeOf: '',
  });
  return [
    {
      ...figure(0.5),
      key: 'cattle.nextJobLatencyMsP50',
      goal: { bound: 'most', limit: 250 },
      madeOf: 'from the event that shows a Job complete to the one that shows the next Job',
    },
    { ...figure(0.95), key: 'cattle.nextJobLatencyMsP95', madeOf: 'the same' },
  ];
}

function callFigures({ plans, nodes }: CattleRun): Figure[] {
  const calls = plans.flatMap((plan) => [...plan.calls]);
  const countOf = (isCounted: (call: string) => boolean): number =>
    calls.reduce((sum, [call, count]) => (isCounted(call) ? sum + count : sum), 0);
  const figure = (key: string, count: number, limit: number): Figure => ({
    key,
    value: count / (nodes * plans.length),
    unit: 'calls',
    goal: { bound: 'most', limit },
    madeOf: `${count} calls ÷ ${plans.length} Plans of ${nodes} nodes`,
  });
  return [
    figure(
      'cattle.mutatingCallsPerNode',
      countOf((call) => !call.endsWith(' events')),
      2.2,
    ),
    figure(
      'cattle.mutatingCallsWithEventsPerNode',
      countOf(() => true),
      3.2,
    ),
  ];
}

function processFigures({ plans, starts, nodes }: CattleRun): Figure[] {
  const ours = median(starts.ours);
  const client = median(starts.client);
  const script = median(starts.script);
  return [
    {
      key: 'cattle.peakRssMiB',
      value: Math.max(...plans.map(({ peakRssMiB }) => peakRssMiB)),
      unit: 'MiB',
      goal: { bound: 'most', limit: 150 },
      madeOf: `the greatest of the controller with ${nodes} nodes`,
    },
    {
      key: 'cattle.cpuSeconds',
      value: median(plans.map(({ cpuSeconds }) => cpuSeconds)),
      unit: 's',
      goal: { bound: 'most', limit: 10 },
      madeOf: 'of the controller, from its start to the end of the Plan: the median',
    },
    {
      key: 'cattle.startRatio',
      value: ours / client,
      unit: '×',
      goal: { bound: 'most', limit: 1.5 },
      madeOf: `${formatNumber(ours)} ms until it is ready ÷ ${formatNumber(client)} ms for a bare client that lists the same`,
    },
    {
      key: 'cattle.startRatioVsScript',
      value: ours / script,
      unit: '×',
      madeOf: `the same ÷ ${formatNumber(script)} ms for a script that is told what a kubeconfig holds`,
    },
  ];
}

function decisionFigure(): Figure {
  // The first decisions are not counted, because the compiler has not optimized the code yet.
  timeDecision(100);
  const [few = 0, many = 0, most = 0] = [100, 1_000, 10_000].map((count) => timeDecision(count));
  return {
    key: 'cattle.decisionRatio10k',
    value: most / many,
    unit: '×',
    madeOf: `one decision after one change, ${AT_WORK} nodes at work: ${[few, many, most].map(formatNumber).join(', ')} ms of CPU at 100, 1,000 and 10,000 nodes`,
  };
}
