/** The figures of one Plan of system-upgrade-controller, with what each is made of. */
import { RefitError } from '../../src/util/errors.ts';
import { type Figure, type Findings, formatNumber } from '../figures.ts';
import { median, percentile } from '../statistics.ts';
import { timeDecision } from './decisions.ts';
import type { CattleRun } from './measure.ts';

export function cattleFindings(run: CattleRun): Findings {
  return {
    figures: [wallFigure(run), ...latencyFigures(run), ...callFigures(run), ...processFigures(run), decisionFigure()],
    details: [
      {
        title: 'Mutating calls of the controller',
        header: ['CALL', 'CALLS', 'A NODE'],
        rows: [...run.calls].map(([call, calls]) => [call, String(calls), formatNumber(calls / run.nodes)]),
      },
    ],
  };
}

function wallFigure({ nodes, slots, wallSeconds, bareSeconds }: CattleRun): Figure {
  const bare = median(bareSeconds);
  return {
    key: 'cattle.planWall1000Ratio',
    value: wallSeconds / bare,
    unit: '×',
    goal: { bound: 'most', limit: 1.15 },
    madeOf: `${formatNumber(wallSeconds)} s for a Plan of ${nodes} nodes, ${slots} at a time ÷ ${formatNumber(bare)} s for bare Jobs, the mean of ${bareSeconds.map(formatNumber).join(' s and ')} s`,
  };
}

/** Each Job follows the one whose end made room for it. */
function latencyFigures({ slots, times: { created, completed } }: CattleRun): Figure[] {
  const latencies = created.slice(slots).map((at, index) => at - (completed[index] ?? Number.NaN));
  if (latencies.some((ms) => ms < 0)) throw new RefitError('REFIT_PLAN_FAILED', `more than ${slots} Jobs at once`);
  const figure = (share: number) => ({ value: percentile(latencies, share), unit: 'ms', madeOf: '' });
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

function callFigures({ calls, nodes }: CattleRun): Figure[] {
  const all = [...calls.values()].reduce((sum, count) => sum + count, 0);
  const events = all - [...calls].reduce((sum, [call, count]) => (call.endsWith(' events') ? sum : sum + count), 0);
  const figure = (key: string, count: number, limit: number): Figure => ({
    key,
    value: count / nodes,
    unit: 'calls',
    goal: { bound: 'most', limit },
    madeOf: `${count} calls ÷ ${nodes} nodes`,
  });
  return [
    figure('cattle.mutatingCallsPerNode', all - events, 2.2),
    figure('cattle.mutatingCallsWithEventsPerNode', all, 3.2),
  ];
}

function processFigures({ peakRssMiB, cpuSeconds, starts, nodes }: CattleRun): Figure[] {
  const [ours, bare] = [median(starts.ours), median(starts.bare)];
  return [
    {
      key: 'cattle.peakRssMiB',
      value: peakRssMiB,
      unit: 'MiB',
      goal: { bound: 'most', limit: 150 },
      madeOf: `the greatest of the controller with ${nodes} nodes`,
    },
    {
      key: 'cattle.cpuSeconds',
      value: cpuSeconds,
      unit: 's',
      goal: { bound: 'most', limit: 10 },
      madeOf: 'of the controller, from its start to the end of the Plan',
    },
    {
      key: 'cattle.startRatio',
      value: ours / bare,
      unit: '×',
      goal: { bound: 'most', limit: 1.5 },
      madeOf: `${formatNumber(ours)} ms until it is ready ÷ ${formatNumber(bare)} ms for a bare process that lists the same`,
    },
  ];
}

function decisionFigure(): Figure {
  // The first ones warm the compiler up.
  timeDecision(100);
  const [few = 0, many = 0, most = 0] = [100, 1_000, 10_000].map(timeDecision);
  return {
    key: 'cattle.decisionRatio10k',
    value: most / many,
    unit: '×',
    madeOf: `one decision after one change: ${[few, many, most].map(formatNumber).join(', ')} ms of CPU at 100, 1,000 and 10,000 nodes`,
  };
}
