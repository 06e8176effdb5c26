/**
 * Finds the other Plan for which `spec.prepare` of a Plan waits. With the images of K3s and RKE2, the command `prepare`
 * waits on the node until the other Plan is complete at the same version. It waits for ever if that Plan does not
 * exist, and the image does not say so.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { AwaitedPlan } from '../../../engine/model/awaited-plan.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { conditionOf } from './conditions.ts';

const REMEDY = 'write the name of the right Plan into spec.prepare.args, or create that Plan';

/** Returns whether the Plan is complete, and at which version. */
const endOf = (plan: CattlePlan) => [
  conditionOf(plan, 'Complete')?.status,
  plan.status?.latestVersion,
];

/** Returns what another Plan that waits for this Plan depends on. */
export const waitFacts = (plan: CattlePlan) => [...endOf(plan), awaitedName(plan)];

/** Returns the name of the Plan, in the namespace of `plan`; undefined if `prepare` waits for no Plan. */
function awaitedName({ spec }: CattlePlan): string | undefined {
  const [command, name] = spec?.prepare?.args ?? [];
  return command === 'prepare' ? name : undefined;
}

/** Returns the Plan that must be complete before the Jobs of `plan` can do their work; undefined if there is none. */
export function awaitedBy(plan: CattlePlan, world: World): AwaitedPlan | undefined {
  const { namespace } = plan.metadata;
  const name = awaitedName(plan);
  if (name === undefined) return undefined;
  const find = (other: string): CattlePlan | undefined => world.get(cattlePlans, other, namespace);
  const other = find(name);
  if (other && sameJson(endOf(other), ['True', plan.status?.latestVersion])) return undefined;
  const fault = faultOf(plan, find);
  const title = `Plan ${namespace}/${name}`;
  return { plan: title, ...(fault === undefined ? {} : { fault: { why: fault, remedy: REMEDY } }) };
}

/** Returns a sentence if the Plan waits for a Plan that does not exist, or for itself. */
export function endlessWaits(
  plan: CattlePlan,
  world: World,
  plans: readonly KubeObject[],
): string[] {
  const { name, namespace = 'default' } = plan.metadata;
  const given = plans as readonly CattlePlan[];
  const find = (wanted: string): CattlePlan | undefined =>
    given.findLast(({ metadata, apiVersion }) =>
      sameJson(
        [metadata.name, metadata.namespace ?? 'default', apiVersion],
        [wanted, namespace, plan.apiVersion],
      ),
    ) ?? world.get(cattlePlans, wanted, namespace);
  const fault = faultOf(plan, find);
  const awaited = `${namespace}/${awaitedName(plan)}`;
  return fault === undefined
    ? []
    : [`Plan ${namespace}/${name} waits for Plan ${awaited} in spec.prepare, ${fault}: ${REMEDY}`];
}

/** Returns the reason why the wait of the Plan never ends, as a relative clause; undefined if it may end. */
function faultOf(
  plan: CattlePlan,
  find: (name: string) => CattlePlan | undefined,
): string | undefined {
  const own = plan.metadata.name;
  const passed = new Set<string>();
  for (let next = awaitedName(plan); next !== undefined; ) {
    if (next === own)
      return passed.size === 0 ? 'which is this Plan itself' : 'which waits for this Plan';
    const other = find(next);
    if (other === undefined) return passed.size === 0 ? 'which does not exist' : undefined;
    if (passed.has(next)) return undefined;
    passed.add(next);
    next = awaitedName(other);
  }
  return undefined;
}
