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
import { loadOnce } from './load.ts';
import { type AskControlPlane, observe } from './observe.ts';
import { render } from './render.ts';
import { watchStatus } from './watch.ts';

export interface StatusParts {
  readonly dialects: readonly Dialect[];
  readonly clock: Clock;
  readonly output: Output;
  readonly signal: AbortSignal;
}

const READYZ_TIMEOUT_MS = 3000;

/** Resolves with the exit code. */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { dialects, clock, output, signal } = parts;
  const config = await loadClusterConfig({ path: flags.kubeconfig, context: flags.context });
  const client = createClient(config, { userAgent: 'refit-status' });
  const ask: AskControlPlane = async (endpoints) =>
    await askControlPlane(
      endpoints,
      async (host) => await askReadyz(config, host, { port: flags.apiPort, timeoutMs: READYZ_TIMEOUT_MS }),
    );
  try {
    const loaded = await Promise.all(
      dialects.map(async (dialect) => ({ dialect, ...(await loadOnce(client, dialect)) })),
    );
    if (flags.watch) return await watchStatus({ ...parts, client, ask, form: flags.output });
    const views = await Promise.all(loaded.map(async (each) => await observe(each.dialect, each, ask, clock.now())));
    output.write(await render(views.flat(), flags.output, clock.now(), output.isTerminal));
    return signal.aborted ? EXIT.interrupted : EXIT.ok;
  } finally {
    client.close();
  }
}
