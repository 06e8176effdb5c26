/** Finds the targets that a person names: by their nodes, or by the Machines that are updated. */
import type { ShownPlan, TargetJson } from '../status/json-form.ts';
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
