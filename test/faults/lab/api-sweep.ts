/** Owns the sweep over the API: one run for each fault at each call that a run without faults makes. */
import { type CallPoint, type Fault, faultsAt, nameOf, Tape } from './call-points.ts';
import { type RunOptions, runLab, type Verdict } from './lab-cluster.ts';

/** Two of each, so that order and limits can be broken. */
export const SCENE = { controllers: ['c1', 'c2'], workers: ['w1', 'w2'], concurrent: 2 } as const;

export interface Trial {
  readonly point: CallPoint;
  readonly fault: Fault;
}

export interface Trialled extends Trial {
  readonly verdict: Verdict;
  /** False where the run went another way, and the call was never made. */
  readonly isReached: boolean;
}

/** Actors whose like is there already: a second agent of a role has nothing to tell. */
const LIKES = ['agent c2', 'agent w2'];

/** Every fault at every call, in the order of the calls. */
export async function trialsOf(seed: number, more: Partial<RunOptions> = {}): Promise<Trial[]> {
  const tape = new Tape();
  const { end, violations } = await runLab({ ...SCENE, ...more, tape, seed });
  if (end !== 'Completed' || violations.length > 0) throw new Error(`without faults: ${end} ${violations.join(', ')}`);
  return tape.points
    .filter(({ actor }) => !LIKES.includes(actor))
    .flatMap((point) => faultsAt(point).map((fault) => ({ point, fault })));
}

export async function tryOut(trial: Trial, seed: number, more: Partial<RunOptions> = {}): Promise<Trialled> {
  const wanted = nameOf(trial.point);
  let isReached = false;
  const tape = new Tape((point) => {
    if (nameOf(point) !== wanted) return undefined;
    isReached = true;
    return trial.fault;
  });
  const verdict = await runLab({ ...SCENE, ...more, tape, seed });
  return { ...trial, verdict, isReached };
}

/** True where the run came to an end that it may come to, and nothing was wrong on the way. */
export function isFine({ end, reason, violations }: Verdict): boolean {
  return violations.length === 0 && (end === 'Completed' || (end !== 'stuck' && reason !== ''));
}
