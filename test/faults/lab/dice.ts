/**
 * Mixtures: runs with several random mishaps. For a run that fails, also finds a smallest set of mishaps with which the
 * run still fails.
 */
import { shardsOfSizes } from '../../../src/dialects/autopilot/plan/status-shards/spread.ts';
import type { Quality } from '../../model/host.ts';
import { pick, seededRandom } from '../random.ts';
import { type CallPoint, faultsAt, nameOf } from './call-points.ts';
import { isFine, type Mishap, play, type Scene, type Trouble } from './mishaps.ts';

export interface Throw {
  readonly scene: Scene;
  readonly mishaps: readonly Mishap[];
}

/** The sizes are small, so that a few targets already need several shards. */
const SMALL_SHARDS = shardsOfSizes({ plan: 1, shard: 2, failures: 1 });

/** The maximum number of mishaps in one run. An abort is not counted. */
const MISHAPS = 6;

/** The same seed gives the same cluster and mishaps. */
export async function throwDice(seed: number): Promise<Throw> {
  const random = seededRandom(seed);
  const scene = sceneFor(random);
  const { points, verdict } = await play(scene, seed, []);
  const count = 1 + Math.floor(random() * MISHAPS);
  // Mishaps make a run longer. So mishaps may be planned for up to three times the duration of the undisturbed run.
  const seconds = verdict.seconds * 3;
  const mishaps = Array.from({ length: count }, () => mishapFor(random, points, seconds));
  const abort: readonly Mishap[] =
    random() < 0.15 ? [{ kind: 'abort', second: Math.floor(random() * seconds) }] : [];
  return { scene, mishaps: [...mishaps, ...abort] };
}

function sceneFor(random: () => number): Scene {
  const names = (role: string, most: number): string[] =>
    Array.from({ length: 1 + Math.floor(random() * most) }, (_, index) => `${role}${index + 1}`);
  const payload: Quality =
    random() < 0.8 ? 'good' : pick(random, ['dead', 'garbage', 'impostor', 'brief']);
  const concurrent = 1 + Math.floor(random() * 3);
  const scene = {
    controllers: names('c', 3),
    workers: names('w', 4),
    concurrent,
    payload,
    hasStandby: random() < 0.5,
  };
  const hasBundles = random() < 0.3;
  return random() < 0.3 ? { ...scene, hasBundles, shards: SMALL_SHARDS } : { ...scene, hasBundles };
}

function mishapFor(random: () => number, points: readonly CallPoint[], seconds: number): Mishap {
  const point = pick(random, points);
  if (random() < 0.6) {
    const later = { ...point, nth: point.nth + Math.floor(random() * 2) };
    return { kind: 'call', point: nameOf(later), fault: pick(random, faultsAt(point)) };
  }
  const second = Math.floor(random() * seconds);
  return { kind: 'trouble', actor: point.actor, second, trouble: troubleFor(random) };
}

export function troubleFor(random: () => number): Trouble {
  const forS = 1 + Math.floor(random() * 60);
  return pick<Trouble>(random, [
    { kind: 'cut', direction: pick(random, ['there', 'back', 'both']), forS },
    { kind: 'halt', forS },
    { kind: 'jump', hours: pick(random, [1, -1]) },
    { kind: 'crash' },
  ]);
}

/** Removes mishaps, one after the other, as long as the run still fails. */
export async function shortest(
  { scene, mishaps }: Throw,
  seed: number,
): Promise<readonly Mishap[]> {
  for (const mishap of mishaps) {
    const fewer = mishaps.filter((each) => each !== mishap);
    const { verdict } = await play(scene, seed, fewer);
    if (!isFine(verdict)) return await shortest({ scene, mishaps: fewer }, seed);
  }
  return mishaps;
}
