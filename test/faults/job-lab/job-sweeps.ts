/** The sweeps of runs with Jobs: one run for each single thing that can go wrong, and mixtures by chance. */
import { faultsAt, nameOf } from '../lab/call-points.ts';
import { troubleFor } from '../lab/dice.ts';
import { nameOfTrouble } from '../lab/mishaps.ts';
import { TROUBLES } from '../lab/sweeps.ts';
import { pick, seededRandom } from '../random.ts';
import type { JobScene } from './job-cluster.ts';
import { type JobMishap, type Played, playJobs, tell, wrongIn } from './job-mishaps.ts';
import { INTERFERENCES } from './job-world.ts';

const BASE = { nodes: ['n1', 'n2', 'n3'], concurrency: 2 } as const;
const HELD: JobScene = { ...BASE, cordons: 'the leader', cordoned: ['n1'] };

export interface JobScenario {
  readonly scene: JobScene;
  /** Mishaps that happen in every run of the scenario. */
  readonly course?: readonly JobMishap[];
}

/**
 * The scenarios of the sweeps. In each scenario every call fails once in every way, and every interference happens once
 * in every second.
 */
export const SCENARIOS = {
  'Jobs that cordon their node': {
    scene: { ...BASE, cordons: 'the Job', cordoned: ['n1'], ttlS: 10 },
  },
  'Jobs on nodes that the controller drains': { scene: HELD },
  'Jobs on seven nodes, without cordons': {
    scene: { nodes: ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7'], concurrency: 3, cordons: 'nobody' },
  },
  'a Plan with a wrong template that somebody corrects': {
    scene: { ...BASE, concurrency: 1, cordons: 'the Job', failsOn: ['n1', 'n2', 'n3'] },
    course: [{ kind: 'interference', second: 6, what: 'the Job template changes' }],
  },
  'two Plans for the same nodes, one of them with a channel': {
    scene: { ...BASE, cordons: 'nobody', hasOther: true, hasChannel: true, restS: 4 },
  },
  'a Plan whose version changes and then changes back': {
    scene: { ...BASE, cordons: 'the Job', cordoned: ['n1'] },
    course: [
      { kind: 'interference', second: 12, what: 'the wanted version changes' },
      {
        kind: 'interference',
        second: 16,
        what: 'the wanted version changes back to the first version',
      },
    ],
  },
  'a Plan that somebody deletes and creates again': {
    scene: HELD,
    course: [{ kind: 'interference', second: 2, what: 'the Plan is deleted and created again' }],
  },
} as const satisfies Readonly<Record<string, JobScenario>>;

export interface JobTrial {
  /** What is tried (`where`) and in what way (`what`). Together they name a row of the table. */
  readonly where: string;
  readonly what: string;
  readonly scene: JobScene;
  readonly mishaps: readonly JobMishap[];
}

async function undisturbed({ scene, course = [] }: JobScenario, seed: number): Promise<Played> {
  const played = await playJobs(scene, seed, course);
  const wrong = wrongIn(played.verdict);
  if (played.verdict.end !== 'Complete' || wrong !== '')
    throw new Error(`without faults: ${played.verdict.end} ${wrong}`);
  return played;
}

async function trialsOf(name: string, scenario: JobScenario, seed: number): Promise<JobTrial[]> {
  const { scene, course = [] } = scenario;
  const { points, verdict } = await undisturbed(scenario, seed);
  const seconds = Array.from({ length: verdict.seconds }, (_, second) => second);
  const calls = points.flatMap((point) =>
    faultsAt(point).map((fault) => ({
      where: `${name}: API calls of the controller`,
      what: fault,
      scene,
      mishaps: [...course, { kind: 'call', point: nameOf(point), fault } as const],
    })),
  );
  const interferences = INTERFERENCES.flatMap((what) =>
    seconds.map((second) => ({
      where: `${name}: changes in the cluster`,
      what,
      scene,
      mishaps: [...course, { kind: 'interference', second, what } as const],
    })),
  );
  const troubles = TROUBLES.flatMap((trouble) =>
    seconds.map((second) => ({
      where: `${name}: process of the controller`,
      what: nameOfTrouble(trouble),
      scene: { ...scene, hasStandby: true },
      mishaps: [...course, { kind: 'trouble', actor: 'controller', second, trouble } as const],
    })),
  );
  return [...calls, ...interferences, ...troubles];
}

export const JOB_SWEEPS = Object.entries<JobScenario>(SCENARIOS).map(([name, scenario]) => ({
  name,
  trials: async (seed: number): Promise<JobTrial[]> => await trialsOf(name, scenario, seed),
}));

/** Runs the trial. Returns its end, and what was wrong; `wrong` is empty if nothing was wrong. */
export async function tryJobs(
  { scene, mishaps }: Pick<JobTrial, 'scene' | 'mishaps'>,
  seed: number,
): Promise<{ end: string; wrong: string }> {
  const { verdict } = await playJobs(scene, seed, mishaps);
  const wrong = wrongIn(verdict);
  return {
    end: verdict.end,
    wrong: wrong === '' ? '' : `${mishaps.map(tell).join(' → ')}: ${verdict.end}: ${wrong}`,
  };
}

/** The most mishaps in one run. */
const MISHAPS = 6;

/** The same seed gives the same cluster and mishaps. */
export async function throwJobDice(seed: number): Promise<Pick<JobTrial, 'scene' | 'mishaps'>> {
  const random = seededRandom(seed);
  const scene = sceneFor(random);
  const { points, verdict } = await playJobs(scene, seed, []);
  const seconds = verdict.seconds * 2;
  const mishaps = Array.from({ length: 1 + Math.floor(random() * MISHAPS) }, (): JobMishap => {
    const second = Math.floor(random() * seconds);
    const kind = random();
    if (kind < 0.4) {
      const point = pick(random, points);
      const later = { ...point, nth: point.nth + Math.floor(random() * 3) };
      return { kind: 'call', point: nameOf(later), fault: pick(random, faultsAt(point)) };
    }
    if (kind < 0.8) return { kind: 'interference', second, what: pick(random, INTERFERENCES) };
    return { kind: 'trouble', actor: 'controller', second, trouble: troubleFor(random) };
  });
  return { scene, mishaps };
}

function sceneFor(random: () => number): JobScene {
  const nodes = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, index) => `n${index + 1}`);
  const chance = (share: number): boolean => random() < share;
  return {
    nodes,
    concurrency: 1 + Math.floor(random() * 3),
    cordons: pick(random, ['nobody', 'the Job', 'the leader']),
    hasOther: chance(0.3),
    hasChannel: chance(0.3),
    hasStandby: chance(0.4),
    ...(chance(0.2) ? { failsOn: [pick(random, nodes)] } : {}),
    ...(chance(0.3) ? { cordoned: [pick(random, nodes)] } : {}),
    ...(chance(0.3) ? { restS: 4 } : {}),
    ...(chance(0.4) ? { ttlS: 1 + Math.floor(random() * 20) } : {}),
  };
}

/** Removes mishaps, one after the other, as long as the run still fails. */
export async function fewestJobMishaps(
  { scene, mishaps }: Pick<JobTrial, 'scene' | 'mishaps'>,
  seed: number,
): Promise<readonly JobMishap[]> {
  for (const mishap of mishaps) {
    const fewer = mishaps.filter((each) => each !== mishap);
    if ((await tryJobs({ scene, mishaps: fewer }, seed)).wrong !== '')
      return await fewestJobMishaps({ scene, mishaps: fewer }, seed);
  }
  return mishaps;
}
