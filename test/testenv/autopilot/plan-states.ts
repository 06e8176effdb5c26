/** Records every state of the Plan that a watch shows. */
import { plans } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';

/** The state of a deleted plan. */
export const DELETED = 'deleted';

/**
 * Returns the states in order, without repetitions; '' for a plan without a state. The list grows until `abort` aborts.
 */
export async function watchStates(
  client: KubeClient,
  abort: AbortSignal,
): Promise<readonly string[]> {
  const states: string[] = [];
  const note = (state: string): void => {
    if (states.at(-1) !== state) states.push(state);
  };
  const informer = createInformer(client, plans);
  informer.addHandler({
    added: ({ status }) => note(status?.state ?? ''),
    updated: ({ status }) => note(status?.state ?? ''),
    deleted: () => note(DELETED),
  });
  void informer.run(abort);
  await informer.whenSynced(abort);
  return states;
}
