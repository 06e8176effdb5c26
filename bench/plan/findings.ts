/** Computes the figures of one run of the plan, and the measured values of which each figure is made. */

import type { Memory } from '../../test/support/processes.ts';
import { type Detail, type Figure, type Findings, formatNumber } from '../figures.ts';
import { median, percentile } from '../statistics.ts';
import { criticalPath } from './critical-path.ts';
import { type PlanRun, unavoidable } from './measure.ts';
import { SLOTS } from './rig.ts';
import { stepTimes, successions } from './succession.ts';

export function planFindings(run: PlanRun): Findings {
  return {
    figures: [
      callsFigure(run),
      ...latencyFigures(run),
      orchestrationFigure(run),
      availabilityFigure(run),
      ...memoryFigures(run),
    ],
    details: [callsDetail(run), timeDetail(run), stepsDetail(run), memoryDetail(run)],
  };
}

function callsFigure({ calls, hosts }: PlanRun): Figure {
  const total = calls.reduce((sum, count) => sum + count.calls, 0);
  return {
    key: 'plan.mutatingCallsPerNode',
    value: total / hosts.length,
    unit: 'calls',
    goal: { bound: 'most', limit: 9 },
    madeOf: `${total} calls ÷ ${hosts.length} nodes`,
  };
}

function latencyFigures(run: PlanRun): Figure[] {
  const latencies = latenciesOf(run);
  const echo = median(run.echoes);
  const figure = (share: number): Omit<Figure, 'key'> => {
    const value = percentile(latencies, share);
    const times = formatNumber(value / echo);
    return {
      value,
      unit: 'ms',
      madeOf: `${times} × one write seen by a watch (${formatNumber(echo)} ms)`,
    };
  };
  return [
    { key: 'plan.nextNodeLatencyMsP50', ...figure(0.5), goal: { bound: 'most', limit: 100 } },
    { key: 'plan.nextNodeLatencyMsP99', ...figure(0.99) },
  ];
}

function latenciesOf({ sightings, hosts }: PlanRun): number[] {
  const controllers = hosts.filter(({ role }) => role === 'controller').map(({ name }) => name);
  return successions(sightings, controllers, SLOTS);
}

function orchestrationFigure({ createdAt, completedAt, hosts }: PlanRun): Figure {
  const took = completedAt - createdAt;
  const path = criticalPath(unavoidable(hosts), SLOTS);
  return {
    key: 'plan.orchestrationRatio',
    value: took / path,
    unit: '×',
    goal: { bound: 'most', limit: 1.04 },
    madeOf: `${seconds(took)} from creation to Completed ÷ ${seconds(path)} of one download and the restarts`,
  };
}

function availabilityFigure({ apiGaps: { plan, bare } }: PlanRun): Figure {
  const longest = Math.max(...plan);
  return {
    key: 'plan.apiUnavailableRatio',
    value: longest / bare,
    unit: '×',
    goal: { bound: 'most', limit: 1.1 },
    madeOf: `${seconds(longest)} without an answer from one API server ÷ ${seconds(bare)} of a bare restart`,
  };
}

function memoryFigures({ agents, controller, bareNode }: PlanRun): Figure[] {
  const beside = (rss: number): string =>
    `${formatNumber(rss / bareNode.rss)} × a Node process that does nothing (${formatNumber(bareNode.rss)} MiB)`;
  const idle = median(agents.map(({ rss }) => rss));
  const own = median(agents.map(({ privateDirty }) => privateDirty));
  return [
    {
      key: 'agent.idleRssMiB',
      value: idle,
      unit: 'MiB',
      goal: { bound: 'most', limit: 50 },
      madeOf: `median of ${agents.length} agents; ${beside(idle)}`,
    },
    {
      key: 'agent.idlePrivateMiB',
      value: own,
      unit: 'MiB',
      madeOf: `private dirty; ${formatNumber(own / bareNode.privateDirty)} × that Node process (${formatNumber(bareNode.privateDirty)} MiB)`,
    },
    {
      key: 'controller.rssMiB',
      value: controller.rss,
      unit: 'MiB',
      madeOf: beside(controller.rss),
    },
  ];
}

function callsDetail({ calls, hosts }: PlanRun): Detail {
  return {
    title: 'Mutating calls, from the audit log',
    header: ['SIDE', 'VERB', 'RESOURCE', 'CALLS', 'A NODE', 'REFUSED'],
    rows: calls.map(({ side, verb, resource, calls: count, refused }) => [
      side,
      verb,
      resource,
      String(count),
      formatNumber(count / hosts.length),
      String(refused),
    ]),
  };
}

function timeDetail(run: PlanRun): Detail {
  const { createdAt, completedAt, sightings, hosts } = run;
  const { controllers, workers } = unavoidable(hosts);
  const row = (part: string, values: readonly number[]): string[] => [
    part,
    String(values.length),
    ...[Math.min(...values), median(values), Math.max(...values)].map(seconds),
  ];
  const part = (key: 'download' | 'down' | 'start'): number[] => hosts.map((host) => host[key]);
  return {
    title: 'Where the time went',
    header: ['PART', 'N', 'LEAST', 'MEDIAN', 'MOST'],
    rows: [
      row('unavoidable: download, at the server', part('download')),
      row('unavoidable: service down', part('down')),
      row('unavoidable: process started to first answer', part('start')),
      row('restart of a controller, in all', controllers),
      row('restart of a worker, in all', workers),
      row('plan created → first signal', [(sightings[0]?.at ?? Number.NaN) - createdAt]),
      row('a node completed → the next is signalled', latenciesOf(run)),
      row('last node completed → plan Completed', [
        completedAt - (sightings.at(-1)?.at ?? Number.NaN),
      ]),
    ],
  };
}

function stepsDetail({ sightings }: PlanRun): Detail {
  return {
    title: 'Steps of a node, seen by a watch',
    header: ['STEP', 'N', 'MEDIAN', 'MOST'],
    rows: [...stepTimes(sightings)].map(([step, times]) => [
      step,
      String(times.length),
      seconds(median(times)),
      seconds(Math.max(...times)),
    ]),
  };
}

function memoryDetail({ agents, controller, bareNode }: PlanRun): Detail {
  const rss = agents.map((agent) => agent.rss);
  const medianOf = (key: keyof Memory): number => median(agents.map((agent) => agent[key]));
  const row = (name: string, memory: Memory): string[] => [
    name,
    ...[memory.rss, memory.privateDirty, memory.peak].map(formatNumber),
  ];
  return {
    title: 'Memory at rest after the plan, in MiB',
    header: ['PROCESS', 'RSS', 'PRIVATE DIRTY', 'PEAK RSS'],
    rows: [
      row('agent (median)', {
        rss: medianOf('rss'),
        privateDirty: medianOf('privateDirty'),
        peak: medianOf('peak'),
      }),
      row('agent (greatest)', agents[rss.indexOf(Math.max(...rss))] ?? bareNode),
      row('controller', controller),
      row('a Node process that does nothing', bareNode),
    ],
  };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(3)} s`;
}
