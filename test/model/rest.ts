/**
 * Finds nodes that have only clean-up left: no other part of the world depends on it, so its end may stand for all of it.
 * This is not assumed from the code but tested, by trying every possible move.
 */
import type { NodeState } from './node-state.ts';
import { once } from './numbering.ts';
import type { NodeKind } from './place.ts';

export class Rest {
  readonly #ends = new Map<string, Promise<number>>();
  readonly #kind: NodeKind;
  readonly #cleanedUp: (state: NodeState) => number;

  /** `cleanedUp` numbers an end without what made no difference on the way to it. */
  constructor(kind: NodeKind, cleanedUp: (state: NodeState) => number) {
    this.#kind = kind;
    this.#cleanedUp = cleanedUp;
  }

  /**
   * The state in which everything ends that can happen at this node with so many faults, where all of it is invisible and
   * ends in one; else the state itself. What others may write in between is not looked at: it makes no difference to the
   * agent of a settled target, and is explored for itself.
   */
  async endOf(state: number, faults: number): Promise<number> {
    return await once(this.#ends, `${faults}/${state}`, async () => {
      const seen = new Set([state]);
      const ends = new Set<number>();
      const shape = shapeOf(this.#kind.stateOf(state));
      for (const each of seen) {
        if (shapeOf(this.#kind.stateOf(each)) !== shape) return state;
        const edges = await this.#kind.edgesFrom(each);
        const nexts = edges.filter(({ isForeign, cost }) => !isForeign && cost <= faults);
        for (const { to } of nexts) seen.add(to);
        if (nexts.length === 0) ends.add(this.#cleanedUp(this.#kind.stateOf(each)));
      }
      const [end = state, ...others] = ends;
      return others.length === 0 ? end : state;
    });
  }
}

/** All that others or an invariant can see of a node: not its agent's memory, nor what lies staged. */
function shapeOf({ versions, host }: NodeState): string {
  const { staged: _, service, ...seen } = host;
  return JSON.stringify([versions.at(-1), seen, service?.file, service?.life]);
}
