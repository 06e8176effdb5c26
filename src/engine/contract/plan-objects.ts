/** Finds the plans among the objects of their kind, and says by which name an UpgradePolicy selects a plan. */
import { type KubeObject, keyOf } from '../../kube/resources.ts';
import { claimOf } from '../../signal/at-work.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Dialect } from './dialect.ts';
import { type Place, placeOf } from './node-rollout-place.ts';
import type { World } from './world.ts';

/** The fields by which policies select a plan. Plans of cluster-scoped kinds have no namespace. */
export interface PlanRef {
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Returns the objects that represent the plans of the dialect. `objects` are all objects of the kind. */
export function plansAmong<P extends KubeObject>(
  { planObjects = {} }: Pick<Dialect<P>, 'planObjects'>,
  objects: readonly P[],
): readonly P[] {
  const parts = objects.filter((object) => planObjects.isPlan?.(object) ?? true);
  return planObjects.representing?.(parts) ?? parts;
}

/**
 * Returns true if the plan writes its NodeRollout and sends its notifications. Of several plans with the same NodeRollout,
 * only the last one does, because the history and the messages belong to all of them together.
 */
export function ownsNodeRollout<P extends KubeObject>(
  dialect: Dialect<P>,
  plan: P,
  { list }: Pick<World, 'list'>,
): boolean {
  // Only a dialect whose plans consist of several objects watches all objects of the kind.
  if (dialect.planObjects?.representing === undefined) return true;
  const last = plansAt(dialect, list(dialect.plans), placeOf(dialect, plan)).at(-1);
  return last === undefined || keyOf(last) === keyOf(plan);
}

/**
 * Returns the plans that have the NodeRollout at this place, or those without a NodeRollout if `place` is undefined.
 * `objects` are all objects of the kind.
 */
export function plansAt<P extends KubeObject>(
  dialect: Dialect<P>,
  objects: readonly P[],
  place: Place | undefined,
): readonly P[] {
  return plansAmong(dialect, objects).filter((each) => {
    const own = placeOf(dialect, each);
    return own?.namespace === place?.namespace && own?.name === place?.name;
  });
}

/** Finds the plans of several dialects by the name of the dialect. */
export function planFinder(dialects: readonly Dialect[]) {
  const named = (name: string): Dialect | undefined =>
    dialects.find((dialect) => dialect.name === name);
  return {
    isPlan: (name: string, object: KubeObject): boolean =>
      named(name)?.planObjects?.isPlan?.(object) ?? true,
    plansAmong(name: string, objects: readonly KubeObject[]): readonly PlanRef[] {
      const dialect = named(name);
      if (dialect === undefined) return [];
      return plansAmong(dialect, objects).map((plan) => planRefOf(dialect, plan));
    },
  };
}

/**
 * Returns the text by which Nodes name the plan as the owner of claims, marks and conditions. It stays the same if another
 * object represents the plan.
 */
export function claimantOf<P extends KubeObject>(
  { name, planObjects }: Pick<Dialect<P>, 'name' | 'planObjects'>,
  plan: P,
): string {
  return claimOf(name, { metadata: planObjects?.referenceOf?.(plan) ?? plan.metadata });
}

/** Returns the fields by which an UpgradePolicy selects the plan. */
export function planRefOf<P extends KubeObject>(
  { name: dialect, planObjects }: Pick<Dialect<P>, 'name' | 'planObjects'>,
  plan: P,
): PlanRef {
  const { namespace, name } = planObjects?.referenceOf?.(plan) ?? plan.metadata;
  return { dialect, namespace, name };
}

/** Returns the policy with the changes that other objects of the plan require. */
export function withRulesOfParts<P extends KubeObject>(
  { planRules }: Pick<Dialect<P>, 'planRules'>,
  plan: P,
  policy: RolloutPolicy,
  world: World,
): RolloutPolicy {
  return planRules?.ofParts?.(plan, policy, world) ?? policy;
}
