/**
 * Runs each turn only once, and caches the result. Two agents do the same if only the histories of their objects
 * differ.
 */
import type { NodeState } from './node-state.ts';
import { once } from './numbering.ts';
import { type Answers, type Look, type NodeRules, type Trail, trailOf } from './turn-trail.ts';

export class TakenTurns {
  readonly #rules: NodeRules;
  readonly #trails = new Map<string, Promise<Trail>>();

  constructor(rules: NodeRules) {
    this.#rules = rules;
  }

  /**
   * Works like `trailOf`, with a cache. Of all versions of its object, a turn depends on only two: the version that the
   * agent has seen, and the newest version, to which its writes apply. A turn does not read or change the result of a
   * drain, the cordons of others, or the number of crashes that are left.
   */
  of(node: NodeState): (look: Look, answers: Answers) => Promise<Trail> {
    const { versions, floor, crashes, drain, keptClosed, ...own } = node;
    const text = JSON.stringify(own);
    return async ({ view, ...look }, answers) => {
      const seen =
        view === undefined || view === versions.length ? [] : versions.slice(view - 1, view);
      const short = { ...node, versions: [...seen, ...versions.slice(-1)], floor: 0 };
      const shortLook = { ...look, view: view && 1 };
      const key = text + JSON.stringify([short.versions, shortLook, answers]);
      const trail = await once(
        this.#trails,
        key,
        async () => await trailOf(short, this.#rules, shortLook, answers),
      );
      const known = short.versions.length;
      const floorOf = (to: number): number => {
        if (to === 0) return floor;
        return to < known ? (view ?? floor) : to + versions.length - known;
      };
      const steps = trail.steps.map(({ label, to }) => {
        const all = [...versions, ...to.versions.slice(known)];
        return {
          label,
          to: { ...to, versions: all, floor: floorOf(to.floor), crashes, drain, keptClosed },
        };
      });
      return { ...trail, steps };
    };
  }
}
