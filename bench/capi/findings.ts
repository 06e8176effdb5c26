/** Computes the figures of a fleet of Machines, and the measured values of which each figure is made. */
import { type Findings, formatNumber } from '../figures.ts';
import type { MachineRun } from './measure.ts';

export function machineFindings(run: MachineRun): Findings {
  const { machines, concurrent, wallSeconds, peakRss, cpuSeconds, calls, unanswered } = run;
  return {
    figures: [
      {
        key: 'capi.machinesPerMinute',
        value: (60 * machines) / wallSeconds,
        unit: '1/min',
        madeOf: `${machines} Machines, ${concurrent} at a time, in ${formatNumber(wallSeconds)} s; the extension used ${formatNumber((100 * cpuSeconds) / wallSeconds)} % of a core`,
      },
      {
        key: 'capi.machinesPeakRssMiB',
        value: peakRss,
        unit: 'MiB',
        madeOf: `the greatest of the extension, which serves the hooks and leads, with ${machines} Machines`,
      },
      {
        key: 'capi.callsPerMachine',
        value: calls / machines,
        unit: 'calls',
        madeOf: `of CanUpdateMachine and UpdateMachine; ${unanswered} had no answer`,
      },
      {
        key: 'capi.cpuMsPerMachine',
        value: (1000 * cpuSeconds) / machines,
        unit: 'ms',
        madeOf: 'CPU time of the extension, with a TLS handshake for each call',
      },
    ],
    details: [],
  };
}
