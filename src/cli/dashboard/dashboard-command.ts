/** Runs `refit dashboard`. Watches the cluster and serves its state until the user interrupts the command. */
import { spawn } from 'node:child_process';
import { EXIT, messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import type { ReversibleParts } from '../contract/roll-back.ts';
import type { ConnectionFlags } from '../options.ts';
import { inSession } from '../status/status-session.ts';
import { carryOut } from './actions.ts';
import { uiFiles } from './bundle.ts';
import { explainToPage } from './explain-node.ts';
import { explainRun } from './explain-run.ts';
import { followPlans } from './follow-plans.ts';
import { type Seen, stateOf } from './make-state.ts';
import { eventsAboutNode } from './node-events.ts';
import { previewText } from './preview.ts';
import { serveDashboard } from './server.ts';

interface DashboardFlags extends ConnectionFlags {
  readonly port: number;
  readonly open: boolean;
  readonly allowActions?: boolean;
  /** The name that the page shows for the cluster, in place of the name of the context. */
  readonly clusterName?: string;
}

/** Serves the dashboard until `abort` fires, and then resolves with 130. Rejects if the cluster cannot be read, or the port is in use. */
export async function runDashboard(flags: DashboardFlags, parts: ReversibleParts): Promise<number> {
  const { clock, output, abort, modules } = parts;
  const missing: string[] = [];
  const onDenied = (error: unknown): void => void missing.push(messageOf(error));
  return await inSession(flags, { ...parts, onDenied }, 'refit-dashboard', async (session) => {
    let seen: Seen = { status: { leader: { state: 'unknown' }, plans: [] }, rollouts: [], missing };
    const allowsActions = flags.allowActions === true;
    const cluster = flags.clusterName ?? session.config.context;
    const shared = { allowsActions, ...defined({ cluster }) };
    await using server = await serving({
      port: flags.port,
      explain: (plan, node) => explainToPage(seen.status, plan, node, clock.now()),
      explainRun: (plan, run) => explainRun(seen, plan, run),
      eventsOf: async (plan, node) =>
        await eventsAboutNode(seen, plan, node, session.client, abort),
      preview: async (text) => await previewText(text, flags, parts),
      act: allowsActions ? async (request) => await carryOut(request, flags, parts) : undefined,
    });
    output.write(`The dashboard is at ${server.url}\nCtrl-C ends it.\n`);
    if (flags.open) openBrowser(server.url);
    try {
      for await (const next of followPlans(session, clock, missing)) {
        seen = next;
        server.publish({ ...stateOf({ ...seen, modules }, clock.now()), ...shared });
      }
    } catch (error) {
      if (!abort.aborted) throw error;
    }
    return EXIT.interrupted;
  });
}

async function serving(parts: Omit<Parameters<typeof serveDashboard>[0], 'files'>) {
  const server = await serveDashboard({ ...parts, files: await uiFiles() });
  return { ...server, [Symbol.asyncDispose]: async () => await server.close() };
}

/** The program that opens a URL, for each system that does not have `xdg-open`. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: 'open',
  win32: 'explorer',
};

/** Opens the URL in a browser. Ignores a failure, because a machine may have no browser and the URL is printed, too. */
function openBrowser(url: string): void {
  const { [process.platform]: command = 'xdg-open' } = OPENERS;
  const child = spawn(command, [url], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
