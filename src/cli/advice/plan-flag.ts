/** Names a plan to the commands that the output proposes. */
import { planReference } from '../../engine/model/plan-reference.ts';
import type { ShownPlan } from '../status/json-form.ts';

export type NamedPlan = Pick<ShownPlan, 'dialect' | 'namespace' | 'name'>;

/**
 * Returns the option that names this plan to a command, with a space before it; empty if the
 * command finds the plan without it. A plan in a namespace is always named, because such a
 * namespace often has several plans. Any other plan is named only if `hasOthers` is true, which
 * means that the cluster has more than one plan.
 */
export function planFlag(
  { dialect, namespace, name }: NamedPlan,
  { hasOthers = false }: { readonly hasOthers?: boolean } = {},
): string {
  const isNamed = hasOthers || namespace !== undefined;
  return isNamed ? ` --plan ${planReference({ dialect, namespace, name })}` : '';
}

/** Returns the name by which a command finds the plan. */
function nameFor(plan: NamedPlan): string {
  return plan.namespace === undefined ? plan.name : planReference(plan);
}

/**
 * Returns a sentence for each of the health checks because of which nodes failed. The plan that goes back waits for
 * these checks, too, even if only the release that the nodes leave makes them fail.
 */
export function awaitedChecks(plan: NamedPlan, checks: readonly string[]): string[] {
  return checks.map(
    (check) =>
      `No node goes back while the health check ${check} fails. If only the release makes it fail, run this as soon as the plan that goes back waits for it: refit accept ${nameFor(plan)} --check ${check}`,
  );
}
