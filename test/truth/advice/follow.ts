/** Follows the first advice in one situation of a lab, and says what was wrong with it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '../../faults/random.ts';
import { Stage } from '../../scenes/stage.ts';
import { GroundTruth } from '../ground-truth.ts';
import type { Operation, Scenery } from '../labs/lab.ts';
import { carryOut, type FirstAdvice, firstAdvice, keyOf, operate } from './carry-out.ts';
import type { Path } from './paths.ts';

/** The longest time, in seconds, in which a situation may end. */
const WITHIN = 240;
const PAUSE = 5;
/** The time from a repair to the first command. */
const REPAIR_SECONDS = 60;

/** What came of an advice. */
export interface Followed {
  /** The situation that the first advice was about; undefined if there was no advice. */
  readonly situation: string | undefined;
  /** The answers of commands that were refused. */
  readonly refusals: readonly string[];
  /** True if the situation has ended. */
  readonly isOver: boolean;
  /** What `refit status` said before and at the end, for the message of a failed test. */
  readonly shown: string;
}

/** Leads a lab into the situation of the path, and follows the first advice. */
export async function follow({ lab, steps, repair, world, within }: Path): Promise<Followed> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-advice-'));
  await using things = new AsyncDisposableStack();
  things.defer(async () => await rm(directory, { recursive: true }));
  const stage = things.use(await Stage.open(directory));
  const scenery: Scenery = { stage, truth: new GroundTruth(), random: seededRandom(1) };
  const act = async (what: string | Operation): Promise<void> => {
    if (typeof what === 'string') await operate(lab, scenery, what);
    else await what.act(scenery);
  };
  await lab.open(scenery);
  for (const [what, seconds] of steps) {
    await act(what);
    await stage.wait(seconds);
  }
  const before = await stage.answer('status');
  const first = await firstAdvice(scenery);
  if (first === undefined)
    return { situation: undefined, refusals: [], isOver: false, shown: before };
  if (repair !== undefined) {
    for (const what of repair) await act(what);
    // The leader notices the repair.
    await stage.wait(REPAIR_SECONDS);
  }
  const refusals = await carryOut(lab, scenery, first.advice);
  for (const what of world ?? []) await act(what);
  const isOver = await ends(scenery, first, within ?? WITHIN);
  const after = await stage.answer('status');
  return {
    situation: first.advice.situation,
    refusals,
    isOver,
    shown: `${before}\n--- after ${first.advice.commands.join(', ')}:\n${after}`,
  };
}

/** Resolves with true as soon as the advice is not given any more, or with false after these seconds. */
async function ends(scenery: Scenery, first: FirstAdvice, seconds: number): Promise<boolean> {
  for (let passed = 0; passed < seconds; passed += PAUSE) {
    const now = await firstAdvice(scenery);
    if (now === undefined || keyOf(now) !== keyOf(first)) return true;
    await scenery.stage.wait(PAUSE);
  }
  return false;
}
