/** Owns the sweeps: one run for each single thing that can go wrong, at each place or moment of a run without faults. */
import { type CallPoint, type Fault, faultsAt, nameOf } from './call-points.ts';
import { describe, isFine, type Mishap, nameOfTrouble, play, type Scene, type Trouble } from './mishaps.ts';

/** Two of each, so that order and limits can be broken. */
export const SCENE: Scene = { controllers: ['c1', 'c2'], workers: ['w1', 'w2'], concurrent: 2 };

export interface Trial {
  /** What is tried, and in what way: a row of the table. */
  readonly where: string;
  readonly what: string;
  readonly scene: Scene;
  readonly mishap: Mishap;
}

/** Actors whose like is tried already: a second agent of a role has nothing to tell. */
const LIKES = ['agent c2', 'agent w2'];
const ACTORS = ['controller', 'agent c1', 'agent w1'];

interface Whole {
  readonly points: readonly CallPoint[];
  readonly seconds: number;
}

async function undisturbed(scene: Scene, seed: number): Promise<Whole> {
  const { verdict, points } = await play(scene, seed, []);
  if (!isFine(verdict)) throw new Error(`without faults: ${verdict.end} ${verdict.violations.join(', ')}`);
  return { points, seconds: verdict.seconds };
}

/** Every fault at every call. */
export async function callTrials(name: string, scene: Scene, seed: number): Promise<Trial[]> {
  const { points } = await undisturbed(scene, seed);
  return points
    .filter(({ actor }) => !LIKES.includes(actor))
    .flatMap((point) =>
      faultsAt(point).map((fault: Fault): Trial => {
        const mishap = { kind: 'call', point: nameOf(point), fault } as const;
        return { where: `${name}: calls of ${point.actor}`, what: fault, scene, mishap };
      }),
    );
}

/** Shorter than any patience, and longer than the lease. */
const DURATIONS_S = [5, 40];
const TROUBLES: readonly Trouble[] = [
  ...DURATIONS_S.flatMap((forS) =>
    (['there', 'back', 'both'] as const).map((direction) => ({ kind: 'cut', direction, forS }) as const),
  ),
  ...DURATIONS_S.map((forS) => ({ kind: 'halt', forS }) as const),
  { kind: 'jump', hours: 1 },
  { kind: 'jump', hours: -1 },
];

/** Every trouble of every process in every second, with a second controller that takes over where it can. */
export async function troubleTrials(seed: number): Promise<Trial[]> {
  const scene = { ...SCENE, hasStandby: true };
  const { seconds } = await undisturbed(scene, seed);
  return ACTORS.flatMap((actor) =>
    TROUBLES.flatMap((trouble) =>
      Array.from({ length: seconds + 1 }, (_, second): Trial => {
        const mishap = { kind: 'trouble', actor, second, trouble } as const;
        return { where: `processes: ${actor}`, what: nameOfTrouble(trouble), scene, mishap };
      }),
    ),
  );
}

export interface Tried {
  readonly trial: Trial;
  readonly end: string;
  /** Empty where all is well. */
  readonly wrong: string;
}

export async function tryOut(trial: Trial, seed: number): Promise<Tried> {
  const { verdict, points } = await play(trial.scene, seed, [trial.mishap]);
  const { mishap } = trial;
  const isReached = mishap.kind !== 'call' || points.some((point) => nameOf(point) === mishap.point);
  const { end, reason, violations } = verdict;
  const told = end === 'Completed' ? end : `${end} with a reason`;
  const wrong = isFine(verdict) ? '' : `${describe(mishap)}: ${end} ${reason} ${violations.join('; ')}`;
  return { trial, end: isReached ? told : 'not reached', wrong };
}
