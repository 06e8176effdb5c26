/**
 * Finds nodes that only have to clean up. No other part of the world depends on the clean-up, so the state after the
 * clean-up may represent all states of the clean-up. This is tested by trying every possible move, not assumed from the
 * code.
 */
import type { NodeState } from './node-state.ts';
import { once } from './numbering.ts';
import type { NodeKind } from './place.ts';

export class Rest {
  readonly #ends = new Map<string, Promise<number>>();
  readonly #kind: NodeKind;
  readonly #cleanedUp: (state: NodeState) => number;

  /** `cleanedUp` returns the number of an end state without the details that don't matter. */
  constructor(kind: NodeKind, cleanedUp: (state: NodeState) => number) {
    this.#kind = kind;
    this.#cleanedUp = cleanedUp;
  }

  /**
   * Returns the state that this node reaches when everything has happened that can happen at it with at most this many
   * faults. Returns the given state itself if something visible happens, or if there are several possible final states.
   * Ignores writes by others in the meantime: they make no difference to the agent of a settled target, and are
   * explored separately.
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

/**
 * Returns as text everything that others or an invariant can observe of a node. This excludes the memory of the agent
 * and the staged file.
 */
function shapeOf({ versions, host }: NodeState): string {
  const { staged: _, service, ...seen } = host;
  return JSON.stringify([versions.at(-1), seen, service?.file, service?.life]);
}
