/** Finds the Nodes whose upgrade evicts no pod, so that neither budgets nor missing room stand in its way. */
import type { ReadyContext } from './context.ts';

/** Resolves with the names of the Nodes that no plan drains. */
export async function undrainedNodes({
  dialects,
  ...asking
}: ReadyContext): Promise<ReadonlySet<string>> {
  const found = await Promise.all(
    dialects.map(async (each) => [...((await each.undrained?.(asking)) ?? [])]),
  );
  return new Set(found.flat());
}
