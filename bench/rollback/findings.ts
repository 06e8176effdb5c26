/** Computes the figure of a rollback, and the measured values of which it is made. */
import { type Findings, formatNumber } from '../figures.ts';
import { CONTROLLERS } from '../fleet/fleet.ts';
import type { RollbackRun } from './measure.ts';

export function rollbackFindings({ workers, forwardSeconds, backSeconds }: RollbackRun): Findings {
  const seconds = (value: number): string => `${formatNumber(value)} s`;
  return {
    figures: [
      {
        key: 'rollback.wallRatioToForward',
        value: backSeconds / forwardSeconds,
        unit: '×',
        goal: { bound: 'most', limit: 1.1 },
        madeOf: `${seconds(backSeconds)} back ÷ ${seconds(forwardSeconds)} forward, ${CONTROLLERS} controllers and ${workers} workers, one in ten at a time`,
      },
    ],
    details: [],
  };
}
