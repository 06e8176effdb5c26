/** Plays sequences of operations that follow from a seed, and judges all surfaces after each of them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pick, seededRandom } from '../faults/random.ts';
import { Stage } from '../scenes/stage.ts';
import { GroundTruth } from './ground-truth.ts';
import type { Lab, Operation } from './labs/lab.ts';
import type { Planted } from './planted-untruths.ts';
import { SEQUENCE_INVARIANTS, type Witnessed } from './sequence-invariants.ts';
import { readSurfaces, type Surfaces } from './surfaces.ts';

/** The most operations of a sequence. */
const MOST_OPERATIONS = 12;
/** The most seconds between two operations. The time allows a host to finish its upgrade. */
const MOST_SECONDS = 30;

/** An operation and the seconds that pass after it. */
export interface Step {
  readonly operation: Operation;
  readonly seconds: number;
}

export interface Untruth {
  readonly invariant: string;
  /** What a surface says, and what is true. */
  readonly found: string;
  /** The operations until then. */
  readonly steps: readonly Step[];
}

/** What a sequence has visited. */
export interface Played {
  readonly untruth: Untruth | undefined;
  /** How many times all surfaces were read and judged. */
  readonly renderings: number;
  readonly operations: readonly string[];
  /** The names of the planted untruths that were found. */
  readonly found: ReadonlySet<string>;
}

/** Returns the sequence of the seed. */
export function sequenceOf(lab: Lab, seed: number): Step[] {
  const random = seededRandom(seed);
  const count = 1 + Math.floor(random() * MOST_OPERATIONS);
  return Array.from({ length: count }, () => ({
    operation: pick(random, lab.operations),
    seconds: 1 + Math.floor(random() * MOST_SECONDS),
  }));
}

/** Plays the steps, and stops at the first untruth. Says which of the planted untruths would have been found, too. */
export async function play(
  lab: Lab,
  seed: number,
  steps: readonly Step[],
  planted: readonly Planted[] = [],
): Promise<Played> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-truth-'));
  await using things = new AsyncDisposableStack();
  things.defer(async () => await rm(directory, { recursive: true }));
  const stage = things.use(await Stage.open(directory));
  const truth = new GroundTruth();
  const scenery = { stage, truth, random: seededRandom(seed) };
  await lab.open(scenery);
  let earlier: Surfaces | undefined;
  let renderings = 0;
  const done: Step[] = [];
  const found = new Set<string>();
  for (const step of [FIRST, ...steps, LAST]) {
    await step.operation.act(scenery);
    done.push(step);
    for (let second = 0; second < step.seconds; second++) {
      await stage.wait(1);
      await lab.witness(scenery);
    }
    const surfaces = await readSurfaces(stage);
    const witnessed: Witnessed = { surfaces, truth, earlier, lab, isAtRest: step === LAST };
    earlier = surfaces;
    renderings++;
    for (const each of planted) if (isFound(each, witnessed)) found.add(each.name);
    const untruth = firstUntruth(witnessed);
    if (untruth === undefined) continue;
    return {
      untruth: { ...untruth, steps: done.filter((each) => each !== FIRST && each !== LAST) },
      renderings,
      operations: namesOf(done),
      found,
    };
  }
  return { untruth: undefined, renderings, operations: namesOf(done), found };
}

function firstUntruth(witnessed: Witnessed): Omit<Untruth, 'steps'> | undefined {
  for (const { name, judge } of SEQUENCE_INVARIANTS) {
    const [found] = judge(witnessed);
    if (found !== undefined) return { invariant: name, found };
  }
  return undefined;
}

function isFound({ breaks, distort }: Planted, witnessed: Witnessed): boolean {
  const invariant = SEQUENCE_INVARIANTS.find(({ name }) => name === breaks);
  if (!invariant) throw new Error(`no invariant has the name ${breaks}`);
  return invariant.judge({ ...witnessed, surfaces: distort(witnessed.surfaces) }).length > 0;
}

function namesOf(steps: readonly Step[]): string[] {
  return steps.map(({ operation: { name } }) => name).filter((name) => name !== nothing.name);
}

const nothing: Operation = { name: 'nothing', act: async () => await Promise.resolve() };
/** The first surfaces are read while the plan begins. */
const FIRST: Step = { operation: nothing, seconds: 2 };
/** At the end the world comes to rest. */
const LAST: Step = { operation: nothing, seconds: 60 };

/** Returns the shortest part of the steps, found by leaving out one step after the other, that still shows an untruth of this name. */
export async function shorten(lab: Lab, seed: number, untruth: Untruth): Promise<Untruth> {
  let shortest = untruth;
  for (let index = 0; index < shortest.steps.length; ) {
    const steps = shortest.steps.toSpliced(index, 1);
    const { untruth: again } = await play(lab, seed, steps);
    if (again?.invariant === untruth.invariant) shortest = again;
    else index++;
  }
  return shortest;
}

/** Prints an untruth for people: the steps that lead to it, and what was found. */
export function printUntruth(lab: Lab, seed: number, { invariant, found, steps }: Untruth): string {
  return [
    `${lab.dialect}, seed ${seed}: ${invariant} is broken: ${found}`,
    ...steps.map(
      ({ operation, seconds }, index) => `${index + 1}. ${operation.name}, then ${seconds} s pass`,
    ),
  ].join('\n');
}
