/** Computes the figures of one agent, and the measured values of which each figure is made. */
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';
import type { RestartRound } from './restarting.ts';
import type { ResumeRound } from './resuming.ts';

const MIB = 1024 * 1024;

export function agentFindings(
  restarts: readonly RestartRound[],
  resumes: readonly ResumeRound[],
): Findings {
  const whole = median(restarts.map((round) => round.whole));
  const own = median(restarts.map((round) => round.own));
  const worst = Math.max(...resumes.map(({ again }) => again));
  const [mib, onDisk] = [worst, median(resumes.map(({ had }) => had))].map((bytes) =>
    formatNumber(bytes / MIB),
  );
  return {
    figures: [
      {
        key: 'agent.restartOverheadMs',
        value: median(restarts.map((round) => round.whole - round.own)),
        unit: 'ms',
        goal: { bound: 'most', limit: 200 },
        madeOf: `${formatNumber(whole)} ms from order to report − ${formatNumber(own)} ms of the service itself`,
      },
      {
        key: 'agent.resumeBytes',
        value: median(resumes.map(({ again }) => again)),
        unit: 'bytes',
        goal: { bound: 'most', limit: MIB },
        madeOf: `median of ${resumes.length} kills, ${mib} MiB at worst; ${onDisk} MiB were hashed again on the disk`,
      },
    ],
    details: [
      {
        title: 'Restarts',
        header: ['ORDER TO REPORT', 'SERVICE ITSELF', 'THE REST'],
        rows: restarts.map((round) =>
          [round.whole, round.own, round.whole - round.own].map((ms) => `${formatNumber(ms)} ms`),
        ),
      },
      {
        title: 'Downloads whose agent was killed',
        header: ['ON THE DISK THEN', 'SENT AGAIN'],
        rows: resumes.map(({ had, again }) => [
          `${formatNumber(had / MIB)} MiB`,
          `${formatNumber(again)} bytes`,
        ]),
      },
    ],
  };
}
