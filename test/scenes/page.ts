/** Reads the state that the page of `refit dashboard` gets. */
import { nodeRollouts } from '../../src/api/kinds.ts';
import { stateOf } from '../../src/cli/dashboard/make-state.ts';
import type { DashboardState } from '../../src/cli/dashboard/state.ts';
import { inSession, observeOnce } from '../../src/cli/status/status-session.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { Stage } from './stage.ts';

/** Resolves with the state that the dashboard sends to a page that is opened now. */
export async function pageOf({ kubeconfig, clockOfPeople: clock }: Stage): Promise<DashboardState> {
  const { signal: abort } = new AbortController();
  const parts = { modules: MODULES, clock, abort };
  return await inSession({ kubeconfig }, parts, 'scene', async (session) => {
    const now = clock.now();
    const status = await observeOnce(session, now);
    const { items: rollouts } = await session.client.listAll(nodeRollouts);
    return stateOf({ status, rollouts, missing: [], modules: MODULES }, now);
  });
}
