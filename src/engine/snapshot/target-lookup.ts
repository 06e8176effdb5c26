/** Finds the facts about targets. Each fact is gathered only when a decision needs it, because a rollout may have 15,000 targets. */
import { otherWorkOn } from '../../coordination/tools.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { JoinedTarget } from '../model/joined-target.ts';
import { type Rollout, type Stage, type Target, targetIn } from '../model/rollout.ts';
import type { TargetLookup } from '../model/snapshot.ts';

interface Parts {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly rollout: Rollout;
  readonly world: World;
  readonly joined: readonly JoinedTarget[];
  gatherFacts(stage: Stage, target: Target): TargetFacts;
}

/** A target of the rollout, or one that joined. If a stage names it twice, `stage` is the last one. */
interface Place {
  readonly stage: Stage;
  readonly target: Target;
}

/** A target and its object, for targets whose object exists. */
interface Found extends Place {
  readonly object: KubeObject;
}

/** Returns a lookup of the targets of the rollout, and of the targets that joined. The facts of a target are gathered once. */
export function targetLookup(parts: Parts): TargetLookup {
  const { dialect, plan, rollout, world } = parts;
  const placeOf = placeFinder(parts);
  const find = (key: string): Found | undefined => {
    const place = placeOf(key);
    const object = place && dialect.objectOf(place.stage, place.target, world);
    return place && object && { ...place, object };
  };
  const nodeOf = ({ stage, target }: Place) =>
    dialect.drainDelegation?.nodeOf(stage, target, world);
  const facts = new Map<string, TargetFacts | undefined>();
  const gather = (key: string): TargetFacts | undefined => {
    const place = placeOf(key);
    return place && parts.gatherFacts(place.stage, place.target);
  };
  return {
    get: (key) => facts.getOrInsertComputed(key, gather),
    labelsOf: (key) => find(key)?.object.metadata.labels,
    nodeNameOf(key) {
      const place = placeOf(key);
      return place && nodeOf(place)?.metadata.name;
    },
    occupantOf(key) {
      const found = find(key);
      return found && dialect.nodeSharing?.occupantOf(world, found.target, plan);
    },
    otherWorkOn(key) {
      const found = find(key);
      // The object may be a Node that the leader must not cordon.
      return found ? otherWorkOn(nodeOf(found) ?? found.object) : [];
    },
    unnamedCordonOf(key) {
      const found = find(key);
      const { drainDelegation } = dialect;
      if (!found || !drainDelegation?.unnamedCordon) return undefined;
      const { stage, target } = found;
      return drainDelegation.unnamedCordon(world, rollout, stage, target, plan) ?? 'unknown';
    },
    earlierMsOf(key) {
      const found = find(key);
      return found && dialect.signal.earlierMs?.(world, rollout, found.stage, found.target, plan);
    },
    observable: dialect.signal.observable?.(world),
  };
}

function placeFinder({ rollout, joined }: Parts): (key: string) => Place | undefined {
  const stages = rollout.stages.toReversed();
  const joinedByKey = new Map(joined.map((each) => [each.target.key, each]));
  return (key) => {
    for (const stage of stages) {
      const target = targetIn(stage, key);
      if (target) return { stage, target };
    }
    const found = joinedByKey.get(key);
    const stage = found && rollout.stages.find(({ id }) => id === found.stage);
    return stage && { stage, target: found.target };
  };
}
