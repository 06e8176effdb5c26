/**
 * Reduces states that behave alike to one state: removes history that nothing reads, and sorts nodes that behave alike.
 * Only for configurations with one command whose plan is never replaced.
 * Apart from reordering places (`symmetry.ts`), the reduction removes three things. The code gives the reason for each:
 *
 * - Old versions of the plan. A leader that sees an old version records nothing, because the record contains its
 *   resourceVersion.
 *   It signals nothing, because `src/engine/execute/writes.ts` reads the plan again first.
 * - Old versions of an object that give leaders the same information as a newer version, and that the agent can't see
 *   any more.
 *   Leaders make the same decisions on the newer version. The API server refuses writes for an old version.
 *   The answer of an agent has no meaning for a target that is recorded as done: the transition table in
 *   `engine/assess/evaluate-target.ts` has one row for all answers, and `engine/turn/choose-node-actions.ts` has
 *   nothing to stop.
 * - The progress of a settled target's agent with its clean-up, and the number of its crashes, if nothing else can
 *   observe them
 *   (`rest.ts`). The agent gets all of its crashes back, so that the exploration covers more, never less.
 * `second-tier/reduction.test.ts` checks all of this on small clusters: the full exploration finds exactly the states
 * of the reduced exploration, after each state is replaced by its representative. `planted.test.ts` checks that both
 * explorations find the same mistakes.
 */
import { type Configuration, maySeeWayBack } from './cluster.ts';
import type { LeaderMoves } from './leader-moves.ts';
import type { NodeState } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import type { NodeKind } from './place.ts';
import { Rest } from './rest.ts';
import type { Symmetry } from './symmetry.ts';
import type { State } from './world-state.ts';

export interface ReductionParts {
  readonly configuration: Configuration;
  /** Version lists of the plan. */
  readonly plans: Numbering<readonly number[]>;
  readonly nodes: Numbering<NodeState>;
  readonly leaders: LeaderMoves;
  readonly symmetry: Symmetry;
  /** By place. */
  readonly kinds: readonly NodeKind[];
}

export class Reduction {
  readonly #parts: ReductionParts;
  readonly #trimmed = new Map<string, number>();
  readonly #rests: readonly Rest[];

  constructor(parts: ReductionParts) {
    const { versions, replacedBy, name, crashesEach } = parts.configuration;
    if (versions.length > 1 || replacedBy.length > 0 || maySeeWayBack(parts.configuration))
      throw new Error(`${name}: not for several commands or plans`);
    this.#parts = parts;
    const cleanedUp = ({ versions: all, ...more }: NodeState): number =>
      parts.nodes.numberOf({ ...more, versions: all.slice(-1), floor: 1, crashes: crashesEach });
    const rests = new Map<NodeKind, Rest>();
    this.#rests = parts.kinds.map((kind) => once(rests, kind, () => new Rest(kind, cleanedUp)));
  }

  async canonical(state: State): Promise<State> {
    const { plans, symmetry } = this.#parts;
    const plan = plans.valueOf(state.plan).at(-1) ?? 0;
    const nodes: number[] = [];
    for (const place of state.nodes.keys()) nodes.push(await this.#standIn(state, plan, place));
    const order = symmetry.orderOf(
      plan,
      (place) => (nodes[place] ?? 0) * 0x1_00_00 + (state.requests[place] ?? 0),
    );
    return {
      ...state,
      plan: plans.numberOf([symmetry.renamed(plan, order)]),
      nodes: order.map((old) => nodes[old] ?? 0),
      requests: order.map((old) => state.requests[old] ?? 0),
    };
  }

  async #standIn({ time, nodes, faults }: State, plan: number, place: number): Promise<number> {
    const node = nodes[place] ?? 0;
    const trimmed = once(this.#trimmed, `${time}/${plan}/${place}/${node}`, () =>
      this.#trim(time, plan, place, node),
    );
    const { symmetry, configuration } = this.#parts;
    // A failed target may be tried again, whatever its agent does at the moment.
    const isOver =
      symmetry.isDone(plan, place) ||
      (symmetry.isSettled(plan, place) &&
        !configuration.controls.includes('retry') &&
        configuration.rules.retry === undefined);
    if (!isOver) return trimmed;
    return (await this.#rests[place]?.endOf(trimmed, faults)) ?? trimmed;
  }

  #trim(time: number, plan: number, place: number, node: number): number {
    const { nodes, symmetry, leaders, configuration } = this.#parts;
    const state = nodes.valueOf(node);
    const isDone = symmetry.isDone(plan, place);
    const now = configuration.times[time] ?? 0;
    const kinds = state.versions.map((content) =>
      leaders.tells({ now, plan, place, content, isDone }),
    );
    const isKept = (_: number, index: number): boolean =>
      index + 1 >= state.floor || kinds.lastIndexOf(kinds[index] ?? '') === index;
    const versions = state.versions.filter(isKept);
    const floor = state.versions.slice(0, state.floor - 1).filter(isKept).length + 1;
    return nodes.numberOf({ ...state, versions, floor });
  }
}
