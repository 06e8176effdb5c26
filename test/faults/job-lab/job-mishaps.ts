/**
 * The mishaps of a run with Jobs as data: mishaps that every process can have, and actions of people and of the cluster
 * during the run.
 */
import { type CallPoint, nameOf, Tape } from '../lab/call-points.ts';
import { describe, type Mishap, makeTrouble } from '../lab/mishaps.ts';
import { type JobLab, type JobScene, type JobVerdict, runJobLab } from './job-cluster.ts';
import type { Interference } from './job-world.ts';

export type JobMishap =
  | Exclude<Mishap, { kind: 'abort' }>
  | { readonly kind: 'interference'; readonly second: number; readonly what: Interference };

export interface Played {
  readonly verdict: JobVerdict;
  /** Calls of the run, in order. */
  readonly points: readonly CallPoint[];
}

/** Runs the scene once, with exactly these mishaps. */
export async function playJobs(
  scene: JobScene,
  seed: number,
  mishaps: readonly JobMishap[],
): Promise<Played> {
  const faults = new Map(
    mishaps.flatMap((each) => (each.kind === 'call' ? [[each.point, each.fault] as const] : [])),
  );
  const tape = new Tape((point) => faults.get(nameOf(point)));
  const last = Math.max(0, ...mishaps.map(endOf));
  const everySecond = async (run: JobLab, second: number): Promise<boolean> => {
    for (const mishap of mishaps) {
      if (mishap.kind === 'trouble') makeTrouble(run.processes, second, mishap);
      if (mishap.kind === 'interference' && mishap.second === second)
        await run.world.interfere(mishap.what);
    }
    return second >= last;
  };
  return { verdict: await runJobLab({ ...scene, tape, seed, everySecond }), points: tape.points };
}

/** Returns the second in which the mishap is over. */
function endOf(mishap: JobMishap): number {
  if (mishap.kind === 'call') return 0;
  const isLong = mishap.kind === 'trouble' && 'forS' in mishap.trouble;
  return mishap.second + (isLong ? (mishap.trouble as { forS: number }).forS : 0) + 1;
}

/** Describes the mishap for people, short enough for one line of text. */
export function tell(mishap: JobMishap): string {
  return mishap.kind === 'interference'
    ? `${mishap.what} in second ${mishap.second}`
    : describe(mishap);
}

/** Describes what went wrong; empty if the run ended as allowed. */
export function wrongIn({ end, violations }: JobVerdict): string {
  const bad = end.startsWith('stuck') ? [end] : [];
  return [...bad, ...violations].join('; ');
}
