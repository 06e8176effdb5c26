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
   * Returns the target of a node, or undefined if the Plan ignores the node. Calls `compute` only if the node, its Jobs or
   * the time changed since the last call, so `compute` must depend on nothing else.
   */
  targetOf(node: Node, inputs: TargetInputs, compute: TargetOfNode): Target | undefined;
  /**
   * Returns the list of the last call if it has the same targets; otherwise returns `targets`. This matters because
   * callers compute values once for each list object.
   */
  sameList(targets: readonly Target[]): readonly Target[];
}

export interface TargetInputs {
  /** The Jobs of all Plans on the node; undefined if the node has no Job. */
  readonly ofNode: readonly Job[] | undefined;
  /** The time of the reconcile in RFC 3339. A change of the time matters only for a target whose `since` is this time. */
  readonly time: string;
}

export type TargetOfNode = (node: Node) => Target | undefined;

interface RememberedTarget extends TargetInputs {
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
    targetOf: (node, inputs, compute) => {
      const last = targets.get(node);
      if (last && isCurrent(last, inputs)) return last.target;
      const target = compute(node);
      targets.set(node, { ...inputs, target });
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

function isCurrent(last: RememberedTarget, { ofNode, time }: TargetInputs): boolean {
  const hasSameTime = last.time === time || last.target?.since !== last.time;
  return hasSameTime && sameJson(last.ofNode, ofNode);
}
