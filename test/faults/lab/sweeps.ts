/** The sweeps: one run for each single thing that can go wrong, at each place or moment of a run without faults. */
import { shardsOfSizes } from '../../../src/dialects/autopilot/plan/status-shards/spread.ts';
import { type CallPoint, type Fault, faultsAt, nameOf } from './call-points.ts';
import {
  describe,
  isFine,
  type Mishap,
  nameOfTrouble,
  play,
  type Scene,
  type Trouble,
} from './mishaps.ts';

/** Two controllers and two workers, so that order and limits can be violated. */
export const SCENE: Scene = { controllers: ['c1', 'c2'], workers: ['w1', 'w2'], concurrent: 2 };

/** The plan has one target more than it may hold. It can have one failure more than it may list. */
export const SHARDS: Scene = {
  controllers: ['c1'],
  workers: ['w1', 'w2', 'w3'],
  concurrent: 2,
  shards: shardsOfSizes({ plan: 3, shard: 2, failures: 1 }),
};

/** In each of these scenes, every call of every actor fails once in every way. */
const CALL_SCENES: Readonly<Record<string, Scene>> = {
  'an update': SCENE,
  'a roll-back': { ...SCENE, payload: 'dead' },
  'an update after a bundle of images': { ...SCENE, hasBundles: true },
  'an update with status shards': SHARDS,
  'a roll-back with status shards': {
    ...SHARDS,
    controllers: [],
    workers: ['w1', 'w2', 'w3', 'w4'],
    payload: 'dead',
  },
};

export interface Trial {
  /** What is tried (`where`) and in what way (`what`). Together they name a row of the table. */
  readonly where: string;
  readonly what: string;
  readonly scene: Scene;
  readonly mishap: Mishap;
}

/** The actors whose calls fail. A second agent of a role would give no new information. */
const ACTORS = ['controller', 'agent c1', 'agent w1'];

interface Whole {
  readonly points: readonly CallPoint[];
  readonly seconds: number;
}

async function undisturbed(scene: Scene, seed: number): Promise<Whole> {
  const { verdict, points } = await play(scene, seed, []);
  const wanted = scene.payload === undefined ? 'Completed' : 'ApplyFailed';
  const { end, reason, violations } = verdict;
  if (end !== wanted || !isFine(verdict))
    throw new Error(`without faults: ${end} ${reason} ${violations.join(', ')}`);
  return { points, seconds: verdict.seconds };
}

/** Returns the words for an actor in the tables: `agent w1` is the `agent on w1`. */
function processOf(actor: string): string {
  return actor.replace('agent', 'agent on');
}

/** Returns a trial for every fault at every call. */
export async function callTrials(name: string, scene: Scene, seed: number): Promise<Trial[]> {
  const { points } = await undisturbed(scene, seed);
  return points
    .filter(({ actor }) => ACTORS.includes(actor))
    .flatMap((point) =>
      faultsAt(point).map((fault: Fault): Trial => {
        const mishap = { kind: 'call', point: nameOf(point), fault } as const;
        return {
          where: `${name}: API calls of the ${processOf(point.actor)}`,
          what: fault,
          scene,
          mishap,
        };
      }),
    );
}

/** The first duration is shorter than any timeout. The second is longer than the lease. */
const DURATIONS_S = [5, 40];
export const TROUBLES: readonly Trouble[] = [
  ...DURATIONS_S.flatMap((forS) =>
    (['there', 'back', 'both'] as const).map(
      (direction) => ({ kind: 'cut', direction, forS }) as const,
    ),
  ),
  ...DURATIONS_S.map((forS) => ({ kind: 'halt', forS }) as const),
  { kind: 'jump', hours: 1 },
  { kind: 'jump', hours: -1 },
];

/** Returns a trial for every trouble of every process in every second. A second controller takes over where it can. */
async function troubleTrials(
  name: string,
  plain: Scene,
  actors: readonly string[],
  seed: number,
): Promise<Trial[]> {
  const scene = { ...plain, hasStandby: true };
  const { seconds } = await undisturbed(scene, seed);
  return actors.flatMap((actor) =>
    TROUBLES.flatMap((trouble) =>
      Array.from({ length: seconds + 1 }, (_, second): Trial => {
        const mishap = { kind: 'trouble', actor, second, trouble } as const;
        return {
          where: `${name}: process of the ${processOf(actor)}`,
          what: nameOfTrouble(trouble),
          scene,
          mishap,
        };
      }),
    ),
  );
}

export interface Sweep {
  readonly name: string;
  trials(seed: number): Promise<Trial[]>;
}

export const SWEEPS: readonly Sweep[] = [
  ...Object.entries(CALL_SCENES).map(([name, scene]) => ({
    name: `API calls of ${name}`,
    trials: async (seed: number) => await callTrials(name, scene, seed),
  })),
  {
    name: 'processes without connection, suspended processes, and wrong clocks',
    trials: async (seed) => await troubleTrials('an update', SCENE, ACTORS, seed),
  },
  {
    name: 'leaders with status shards: no connection, suspended process, or wrong clock',
    trials: async (seed) =>
      await troubleTrials('an update with status shards', SHARDS, ['controller'], seed),
  },
];

export interface Tried {
  readonly trial: Trial;
  readonly end: string;
  /** Empty if nothing was wrong. */
  readonly wrong: string;
}

export async function tryOut(trial: Trial, seed: number): Promise<Tried> {
  const { verdict, points } = await play(trial.scene, seed, [trial.mishap]);
  const { mishap } = trial;
  const isReached =
    mishap.kind !== 'call' || points.some((point) => nameOf(point) === mishap.point);
  const { end, reason, violations } = verdict;
  const wrong = isFine(verdict)
    ? ''
    : `${describe(mishap)}: ${end} ${reason} ${violations.join('; ')}`;
  return { trial, end: isReached ? end : 'not reached', wrong };
}
