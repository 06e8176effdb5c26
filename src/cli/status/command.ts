/** Owns `refit status`: one look, or a watch that ends when every plan has ended. */
import type { Dialect } from '../../engine/dialect.ts';
import { askControlPlane } from '../../engine/health.ts';
import { createClient } from '../../kube/http-client.ts';
import { loadClusterConfig } from '../../kube/kubeconfig.ts';
import { askReadyz } from '../../kube/readyz.ts';
import type { Clock } from '../../util/clock.ts';
import { EXIT } from '../../util/errors.ts';
import type { Output } from '../output.ts';
import type { StatusFlags } from '../program.ts';
import { Contact } from './contact.ts';
import { installedOf } from './installed.ts';
import { askLeader } from './leader.ts';
import { loadOnce } from './load.ts';
import { type AskControlPlane, observe } from './observe.ts';
import { render } from './render.ts';
import { teller } from './teller.ts';
import type { PlanView } from './view.ts';
import { type WatchParts, watchPlans } from './watch.ts';

export interface StatusParts {
  readonly dialects: readonly Dialect[];
  readonly clock: Clock;
  readonly output: Output;
  readonly signal: AbortSignal;
  /** Hears of every look that a watch takes. */
  readonly onLook?: ((plans: readonly PlanView[]) => void) | undefined;
}

const READYZ_TIMEOUT_MS = 3000;

/** Resolves with the exit code: of one look 0; of a watch 0 where all plans are done, 1 where not, 130 interrupted. */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { clock, output, signal } = parts;
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  const contact = new Contact(clock);
  const client = createClient(config, { userAgent: 'refit-status', onRequest: (record) => contact.note(record) });
  const ask: AskControlPlane = async (endpoints) =>
    await askControlPlane(
      endpoints,
      async (host) => await askReadyz(config, host, { port: flags.apiPort, timeoutMs: READYZ_TIMEOUT_MS }),
    );
  try {
    // Before a watch too: lists fail at once where informers would try again for ever.
    const dialects = await installedOf(client, parts.dialects, signal);
    const loaded = await Promise.all(
      dialects.map(async (dialect) => ({ dialect, ...(await loadOnce(client, dialect, signal)) })),
    );
    if (flags.watch) return await watch(flags, parts, { dialects, client, clock, signal, ask, contact });
    const now = clock.now();
    const leader = await askLeader(client, now, signal);
    const plans = await Promise.all(loaded.map(async (each) => await observe(each.dialect, each, ask, now)));
    output.write(await render({ leader, plans: plans.flat() }, flags.output, now, output));
    return EXIT.ok;
  } finally {
    client.close();
  }
}

async function watch(flags: StatusFlags, { output, clock, onLook }: StatusParts, parts: WatchParts): Promise<number> {
  const tell = teller(output, flags.output);
  let last: readonly PlanView[] = [];
  try {
    for await (const view of watchPlans(parts)) {
      last = view.plans;
      onLook?.(last);
      await tell(view, clock.now());
    }
  } catch (error) {
    if (parts.signal.aborted) return EXIT.interrupted;
    throw error;
  }
  return last.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
}
