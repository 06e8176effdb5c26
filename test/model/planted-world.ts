/** Finds the invariant that a planted mistake breaks, in a world whose invariants are few. */
import { EVERY_RUN_ENDS, type Exploration, explore, type Model } from './explorer.ts';

/** Explores only for the invariant that the mistake breaks. */
export async function exploreFor(world: Model, breaks: string): Promise<Exploration> {
  const asked = ({ name }: { readonly name: string }): boolean => name === breaks;
  return await explore({
    initial: world.initial,
    invariants: world.invariants.filter(asked),
    invariantsAtRest: (world.invariantsAtRest ?? []).filter(asked),
    next: async (state) => await world.next(state),
    isFinal: (state) => breaks !== EVERY_RUN_ENDS || world.isFinal(state),
  });
}

/** An invariant of such a world. */
export interface AskedInvariant<G, C> {
  readonly name: string;
  /** True if the invariant must hold only when nothing has to happen any more. */
  readonly atRest: boolean;
  readonly holds: (glance: G, configuration: C) => boolean;
}

/** Returns the invariants of a model with this configuration. */
export function invariantsOf<G, C>(
  all: readonly AskedInvariant<G, C>[],
  glanceAt: (text: string) => G,
  configuration: C,
): Pick<Model, 'invariants'> & Required<Pick<Model, 'invariantsAtRest'>> {
  const asked = all.map(({ name, atRest, holds }) => ({
    name,
    atRest,
    holds: (text: string) => holds(glanceAt(text), configuration),
  }));
  return {
    invariants: asked.filter(({ atRest }) => !atRest),
    invariantsAtRest: asked.filter(({ atRest }) => atRest),
  };
}
