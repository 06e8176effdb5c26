/** Explains a node to the page: what `refit why NODE` says, and the commands that help. */
import { adviceJson } from '../advice/advice.ts';
import type { ShownPlan, ShownStatus } from '../status/json-form.ts';
import { targetsOf } from '../status/sentences.ts';
import { explainNode, keyOf } from './make-state.ts';
import type { Said } from './state.ts';

/**
 * The names that a shell takes as one word. A plan may list any text as the name of a node, and people paste a command
 * into a shell without reading it again.
 */
const ONE_WORD = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;

/** Returns true if a shell and a field selector take the name as one word. */
export function isOneWord(name: string): boolean {
  return ONE_WORD.test(name);
}

/** Returns nothing if the plan with this key does not have the node. */
export function explainToPage(status: ShownStatus, key: string, node: string, now: number): Said[] {
  const commands = status.plans
    .filter((plan) => keyOf(plan) === key)
    .flatMap((plan) => commandsFor(plan, node));
  const said = explainNode(status, key, node, now);
  if (commands.length === 0) return said;
  return [...said, { heading: 'commands', lines: [...new Set(commands)], areCommands: true }];
}

/** Returns the commands that help with the node, the most helpful first. */
function commandsFor(plan: ShownPlan, node: string): string[] {
  const target = targetsOf(plan).find(({ name }) => name === node);
  if (target === undefined || !isOneWord(node)) return [];
  const { phase, held } = target;
  const advice = adviceJson(plan).filter(({ situation, nodes }) =>
    nodes === undefined ? phase === 'pending' && situation !== 'Held' : nodes.includes(node),
  );
  const canStart = phase === 'pending' || phase === 'skipped';
  return [
    ...(held === undefined ? [] : [`refit unhold ${node}`]),
    ...budgetCommands(target.drain?.budgets),
    ...advice.flatMap(({ commands }) => commands),
    `refit why ${node}`,
    ...(canStart ? [] : [`refit logs ${node}`]),
    ...(canStart && held === undefined ? [`refit hold ${node} --reason TEXT`] : []),
  ];
}

/** Returns the commands that show the PodDisruptionBudgets with these names, as `namespace/name`. */
function budgetCommands(budgets: readonly string[] = []): string[] {
  return budgets.flatMap((each) => {
    const [namespace = '', name = ''] = each.split('/');
    if (!isOneWord(namespace) || !isOneWord(name)) return [];
    return [`kubectl describe poddisruptionbudget ${name} -n ${namespace}`];
  });
}
