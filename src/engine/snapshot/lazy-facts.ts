/**
 * Computes some facts of a target only on first use, because these facts depend on more objects than the object of the
 * target.
 */

import { otherWorkOn } from '../../coordination/tools.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { Rollout, Stage, Target } from '../model/rollout.ts';

/**
 * The data from which the facts are computed. `cordoned` is the Node of the target that the leader may cordon. If there
 * is no such Node, it is the object of the target.
 */
interface Place {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly rollout: Rollout;
  readonly world: World;
  readonly stage: Stage;
  readonly target: Target;
  readonly cordoned: KubeObject;
}

type LazyFact = 'occupant' | 'otherWork' | 'unnamedCordon' | 'earlierMs';

/** The facts of a target that are gathered immediately. */
export type OwnFacts = Omit<TargetFacts, LazyFact>;

const PLACE = Symbol('place');

class Lazy implements Pick<TargetFacts, LazyFact> {
  declare readonly [PLACE]: Place;

  get occupant() {
    const { dialect, world, target, plan } = this[PLACE];
    return dialect.nodeSharing?.occupantOf(world, target, plan);
  }

  get otherWork() {
    return otherWorkOn(this[PLACE].cordoned);
  }

  get unnamedCordon() {
    const { dialect, world, rollout, stage, target, plan } = this[PLACE];
    if (!dialect.drainDelegation?.unnamedCordon) return undefined;
    return dialect.drainDelegation.unnamedCordon(world, rollout, stage, target, plan) ?? 'unknown';
  }

  get earlierMs() {
    const { dialect, world, rollout, stage, target } = this[PLACE];
    return dialect.signal.earlierMs?.(world, rollout, stage, target);
  }

  /** Returns all facts as plain data, for `JSON.stringify`. */
  toJSON(): object {
    const { occupant, otherWork, unnamedCordon, earlierMs } = this;
    return Object.assign({}, this, { occupant, otherWork, unnamedCordon, earlierMs });
  }
}

/**
 * Adds the facts that are computed on demand to the given facts, and returns the same object. The accessors are on a shared prototype,
 * because V8 stores an object literal with accessors as a hash table. That takes several times the memory, and a rollout may have 15,000
 * targets.
 */
export function withLazyFacts(
  { dialect, plan, rollout, world }: Omit<Place, 'stage' | 'target' | 'cordoned'>,
  own: OwnFacts,
  of: Pick<Place, 'stage' | 'target' | 'cordoned'>,
): TargetFacts {
  const place: Place = { dialect, plan, rollout, world, ...of };
  Object.defineProperty(own, PLACE, { value: place });
  return Object.setPrototypeOf(own, Lazy.prototype) as TargetFacts;
}
