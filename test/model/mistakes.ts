/** Owns the table of planted mistakes: each with the cluster in which it shows, and the invariant that it breaks there. */
import type { Configuration } from './cluster.ts';
import { OLD } from './cluster.ts';
import { configure, V2 } from './configurations.ts';
import type { Model, Violation } from './explorer.ts';
import { EVERY_RUN_ENDS, explore } from './explorer.ts';
import * as planted from './planted.ts';
import type { Parts } from './world.ts';
import { World } from './world.ts';

export interface Mistake {
  readonly name: string;
  readonly configuration: Configuration;
  readonly parts: Partial<Parts>;
  readonly breaks: string;
}

const controllers = configure('2 controllers', 'c1 c2', { faults: 0 });
const workers = configure('2 workers', 'w1 w2', { faults: 0 });
const mixed = configure('1 controller, 1 worker', 'c1 w1', { faults: 0 });
const single = configure('1 worker', 'w1');
/** The first command brings what runs already, so that the second one is reached within a few steps. */
const twoCommands = configure('1 controller, 2 commands', 'c1', { versions: [OLD, V2], faults: 0 });
const garbage = configure('1 worker, payload cannot be executed', 'w1:garbage');

const random = { leader: planted.randomChoiceAfterLostWrite };

export const MISTAKES: readonly Mistake[] = [
  mistake('a decision on a stale view', twoCommands, { leader: planted.onStaleView }, 'no-signal-for-what-is-done'),
  mistake('a signal before its intent', mixed, { leader: planted.signalBeforeIntent }, 'intent-before-signal'),
  mistake('a random choice after a lost write', controllers, random, 'signals-within-slots'),
  mistake('a random choice after a lost write', controllers, random, 'one-controller-in-motion'),
  mistake('a random choice after a lost write', workers, random, 'concurrent-workers'),
  mistake('no limit on workers', workers, { leader: planted.withoutLimit }, 'concurrent-workers'),
  mistake('stages in any order', mixed, { leader: planted.stagesInAnyOrder }, 'controllers-before-workers'),
  mistake('a restart taken for the end', controllers, { leader: planted.doneTooEarly }, 'done-runs-it'),
  mistake('a signal that is never sent', single, { leader: planted.neverSignals }, EVERY_RUN_ENDS),
  mistake('no trial run', garbage, { afterStep: planted.noTrialRun }, 'runnable-binary'),
  mistake('the previous binary is not kept', single, { afterStep: planted.previousIsNotKept }, 'way-back'),
  mistake('what is staged is fetched anew', single, { afterStep: planted.downloadsAnew }, 'downloaded-once'),
  mistake('a roll-back ends the service', single, { afterStep: planted.rollsBackRoughly }, 'rolled-back-rests'),
];

function mistake(name: string, configuration: Configuration, parts: Partial<Parts>, breaks: string): Mistake {
  return { name, configuration, parts, breaks };
}

/** A shortest way to break this one invariant, whatever else breaks before; undefined where it holds. */
export async function counterexample(
  { configuration, parts, breaks }: Mistake,
  modelOf: (world: World) => Model = (world) => world,
): Promise<Violation | undefined> {
  const model = modelOf(new World(configuration, parts));
  const { violation } = await explore({
    initial: model.initial,
    invariants: model.invariants.filter(({ name }) => name === breaks),
    next: async (state) => await model.next(state),
    isFinal: (state) => model.isFinal(state),
    canonical: async (state) => (await model.canonical?.(state)) ?? state,
  });
  return violation;
}
