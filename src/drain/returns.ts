/** Owns noticing the pods that come back to the node as often as they are evicted: those that tolerate its cordon. */
import { keyOf } from '../kube/object-key.ts';
import type { Pod } from '../kube/types.ts';
import { controllerOf } from './pods.ts';

/**
 * So many successors of a pod are evicted too. Whoever tolerates everything and fits nowhere else would come back for
 * ever, where kubectl evicts only the pods that it saw first; in the end such a pod is left, as those of DaemonSets are.
 */
const PATIENCE = 3;

interface Known {
  /** Whoever creates the successors of a pod. */
  readonly kin: string;
  /** How many predecessors went before it. */
  readonly round: number;
}

export class Returns {
  /** By uid. */
  readonly #present = new Map<string, Known>();
  /** By kin: the rounds of those that went. */
  readonly #rounds = new Map<string, number>();

  /** Of the pods that may be evicted now, those that came back too often. Must see each look at the node. */
  retrying(pods: readonly Pod[]): ReadonlySet<Pod> {
    this.#forget(new Set(pods.map(({ metadata }) => metadata.uid)));
    return new Set(pods.filter((pod) => this.#roundOf(pod) > PATIENCE));
  }

  #forget(present: ReadonlySet<string | undefined>): void {
    for (const [uid, { kin, round }] of this.#present) {
      if (present.has(uid)) continue;
      this.#present.delete(uid);
      this.#rounds.set(kin, Math.max(this.#rounds.get(kin) ?? 0, round + 1));
    }
  }

  #roundOf(pod: Pod): number {
    const { uid = '' } = pod.metadata;
    const kin = controllerOf(pod)?.uid ?? keyOf(pod);
    const known = this.#present.get(uid) ?? { kin, round: this.#rounds.get(kin) ?? 0 };
    this.#present.set(uid, known);
    return known.round;
  }
}
