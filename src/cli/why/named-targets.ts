/** Finds what a person names: targets by their nodes or by the Machines that are updated, or a plan. */
import type { ShownPlan, ShownStatus, TargetJson } from '../status/json-form.ts';
import { isShownAs } from '../status/plan-names.ts';
import type { Section } from '../status/text.ts';

/** Returns a function that returns true for the targets that `node` names. `node` is the name of a node, or of its Machine. */
export function targetNamed({ kind, name: own }: ShownPlan, node: string) {
  const named = node.replace(/^machine\//i, '');
  const isNamed = (key: string): boolean => key === named || key.endsWith(`/${named}`);
  return ({ name, machine = kind === 'Machine' ? own : '' }: TargetJson): boolean =>
    name === node || isNamed(machine);
}

/** Returns the section with the Machine of the target, unless the title of the plan names the Machine. */
export function machineSection({ kind }: ShownPlan, { machine }: TargetJson): Section {
  return { heading: 'machine', lines: kind === 'Machine' || !machine ? [] : [machine] };
}

/** Returns the status with only the plan that `named` names, unless it names a node. Each other name is that of a node. */
export function askedOf<T extends ShownStatus>(
  status: T,
  named: string | undefined,
): { readonly status: T; readonly node: string | undefined } {
  if (named === undefined) return { status, node: undefined };
  const isNode = status.plans.some(
    (plan) =>
      plan.stages.some(({ targets }) => targets.some(targetNamed(plan, named))) ||
      plan.joined?.some(({ name }) => name === named) === true,
  );
  const plans = status.plans.filter((plan) => isShownAs(plan, named));
  return isNode || plans.length === 0
    ? { status, node: named }
    : { status: { ...status, plans }, node: undefined };
}
