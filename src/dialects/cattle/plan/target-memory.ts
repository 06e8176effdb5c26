/**
 * Remembers the targets that earlier reconciles computed, because most nodes do not change from one reconcile to the
 * next.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Target } from '../../../engine/model/rollout.ts';
import type { Job, Node } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { onceForEachWith } from '../../../util/memo.ts';

/** The memory of one dialect. It forgets a version of a Plan or a Node as soon as nothing else refers to that object. */
export interface TargetMemory {
  /** Returns the memory for this version of a Plan and this hash. The memory is empty at the first call. */
  of(plan: CattlePlan, hash: string): PlanMemory;
}

/** The results that earlier reconciles computed for one version of a Plan. */
export interface PlanMemory {
  /** Returns the nodes by ascending rank. Sorts again only after nodes were added or removed. */
  sorted(all: readonly Node[], rankOf: (node: Node) => number): readonly Node[];
  /**
   * Returns the target of a node, or undefined if the Plan ignores the node. Calls `compute` only if the node or its Jobs
   * changed since the last call, so `compute` must depend on nothing else. `ofNode` are the Jobs of all Plans on the
   * node; undefined if the node has no Job.
   */
  targetOf(
    node: Node,
    ofNode: readonly Job[] | undefined,
    compute: TargetOfNode,
  ): Target | undefined;
  /**
   * Returns the list of the last call if it has the same targets; otherwise returns `targets`. This matters because
   * callers compute values once for each list object.
   */
  sameList(targets: readonly Target[]): readonly Target[];
}

export type TargetOfNode = (node: Node) => Target | undefined;

interface RememberedTarget {
  readonly ofNode: readonly Job[] | undefined;
  readonly target: Target | undefined;
}

export function createTargetMemory(): TargetMemory {
  return { of: onceForEachWith((_plan: CattlePlan, _hash) => createPlanMemory()) };
}

export function createPlanMemory(): PlanMemory {
  const targets = new WeakMap<Node, RememberedTarget>();
  let uids: readonly (string | undefined)[] = [];
  let places: readonly number[] = [];
  let list: readonly Target[] = [];
  return {
    sorted: (all, rankOf) => {
      const current = all.map(({ metadata }) => metadata.uid);
      if (!sameJson(uids, current)) {
        const ranks = all.map((node) => rankOf(node));
        uids = current;
        places = [...all.keys()].toSorted((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0));
      }
      return places.map((place) => all[place] as Node);
    },
    targetOf: (node, ofNode, compute) => {
      const last = targets.get(node);
      if (last && sameJson(last.ofNode, ofNode)) return last.target;
      const target = compute(node);
      targets.set(node, { ofNode, target });
      return target;
    },
    sameList: (current) => {
      const isSame =
        current.length === list.length && current.every((target, place) => target === list[place]);
      if (!isSame) list = current;
      return list;
    },
  };
}
