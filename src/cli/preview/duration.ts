/** Estimates how long a plan takes. */
import { decodeSignal } from '../../signal/codec.ts';
import { decodeReport } from '../../signal/report.ts';
import type { Inspection } from '../status/observe.ts';

/** All in milliseconds. */
export interface Duration {
  readonly ms: number;
  readonly perTargetMs: number;
  /** measured: what nine in ten of these nodes took the last time · assumed: nothing was measured. */
  readonly basis: 'measured' | 'assumed';
  readonly samples: number;
}

/** A node of k0s from its signal to its last report, with nothing to drain and a tiny download: docs/internals/benchmark.md. */
const ASSUMED_MS = 20_000;

interface Waves {
  readonly moving: readonly string[];
  readonly waves: readonly (readonly string[])[];
}

/** Waves one after the other; undefined if nothing is left to do. */
export function durationOf(stages: readonly Waves[], inspection: Inspection): Duration | undefined {
  const waves = stages.reduce((sum, stage) => sum + stage.waves.length + (stage.moving.length > 0 ? 1 : 0), 0);
  if (waves === 0) return undefined;
  const spent = measured(inspection);
  const perTargetMs = spent[Math.ceil(spent.length * 0.9) - 1] ?? ASSUMED_MS;
  const basis = spent.length > 0 ? 'measured' : 'assumed';
  return { ms: waves * perTargetMs, perTargetMs, basis, samples: spent.length };
}

/** What each target reported of its last successful update, of this plan or an earlier one; sorted. */
function measured({ dialect, world, snapshot }: Inspection): number[] {
  const targets = snapshot.rollout.stages.flatMap((stage) => stage.targets.map((target) => ({ stage, target })));
  return targets
    .flatMap(({ stage, target }) => {
      const annotations = dialect.objectOf(stage, target, world)?.metadata.annotations;
      const signal = decodeSignal(annotations);
      if (signal?.status?.status !== 'Completed') return [];
      const { spent } = decodeReport(annotations, signal.created) ?? {};
      return spent === undefined ? [] : [Object.values(spent).reduce((sum, ms) => sum + ms, 0)];
    })
    .filter((ms) => ms > 0)
    .toSorted((a, b) => a - b);
}
