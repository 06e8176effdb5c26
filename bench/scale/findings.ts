/** Computes the figures of a whole fleet, and the measured values of which each figure is made. */

import { type Findings, formatNumber } from '../figures.ts';
import { CONTROLLERS } from '../fleet/fleet.ts';
import type { StatusTally } from '../fleet/tally.ts';
import type { GatedDecision } from './gated-decision.ts';
import { type ScaleRun, WORKERS } from './measure.ts';

/**
 * The limits of the goals: bytes of status for each target; MiB of memory of the controller; seconds of the run; and
 * the ratio of a decision with gates to a decision without gates.
 */
const GOALS = { bytes: 4_096, rss: 400, seconds: 900, gates: 1.3 } as const;
const KIB = 1024;

export function scaleFindings(run: ScaleRun, decision: GatedDecision): Findings {
  const targets = WORKERS + CONTROLLERS;
  const bytes = run.plan.bytes + run.shards.bytes;
  const most = (limit: number) => ({ bound: 'most', limit }) as const;
  return {
    figures: [
      {
        key: 'controller.rssMiBAt15k',
        value: run.controller.peak,
        unit: 'MiB',
        goal: most(GOALS.rss),
        madeOf: `the greatest of the run; ${formatNumber(run.controller.rss)} MiB at its end`,
      },
      {
        key: 'plan.wallSecondsAt15k',
        value: run.wallSeconds,
        unit: 's',
        goal: most(GOALS.seconds),
        madeOf: `${targets} targets, one in ten at a time; the controller used ${formatNumber(run.controllerCpu)} % of a core`,
      },
      {
        key: 'status.bytesWrittenPerTarget',
        value: bytes / targets,
        unit: 'bytes',
        goal: most(GOALS.bytes),
        madeOf: `${described(run.plan)} of the plan, ${described(run.shards)} of status shards`,
      },
      {
        key: 'agent.watchEventsPerUpdate',
        value: run.eventsPerAgent,
        unit: 'events',
        madeOf: `of its own object; ${run.eventsOfOthers} events of others reached any agent`,
      },
      {
        key: 'scale.gatedDecisionRatio',
        value: decision.ratio,
        unit: '×',
        goal: most(GOALS.gates),
        madeOf: `${WORKERS} nodes of a Plan of system-upgrade-controller: ${formatNumber(decision.gatedMs)} ms of CPU under a policy with every gate, ${formatNumber(decision.plainMs)} ms under none`,
      },
    ],
    details: [
      {
        title: 'The fleet',
        header: ['REQUESTS', 'PER TARGET', 'MOST TARGETS LISTED IN THE PLAN'],
        rows: [
          [String(run.requests), formatNumber(run.requests / targets), String(run.mostListed)],
        ],
      },
    ],
  };
}

function described({ writes, bytes }: StatusTally): string {
  return `${writes} writes, ${formatNumber(bytes / Math.max(1, writes) / KIB)} KiB each`;
}
