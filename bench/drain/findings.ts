/** Computes the figure of parallel drains, and the measured values of which it is made. */
import { type Findings, formatNumber } from '../figures.ts';
import { type DrainRun, NODES, POD_MS, PODS } from './measure.ts';

export function drainFindings({ one, many }: DrainRun): Findings {
  const seconds = (ms: number): string => `${formatNumber(ms / 1000)} s`;
  return {
    figures: [
      {
        key: 'drain.parallelRatio',
        value: many / one,
        unit: '×',
        goal: { bound: 'most', limit: 1.3 },
        madeOf: `${seconds(many)} for ${NODES} nodes at once ÷ ${seconds(one)} for one, each with ${PODS} pods that end in ${seconds(POD_MS)}`,
      },
    ],
    details: [],
  };
}
