/** Runs `refit dashboard`: follows the cluster with watches, and serves what it sees until it is interrupted. */
import { spawn } from 'node:child_process';
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import { tryList } from '../../kube/try-list.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { EXIT, messageOf } from '../../util/errors.ts';
import type { ConnectionFlags } from '../options.ts';
import { inSession, type Session, type SessionParts } from '../status/status-session.ts';
import { watchPlans } from '../status/watch-plans.ts';
import { carryOut } from './actions.ts';
import { uiFiles } from './bundle.ts';
import { explainNode, type Seen, stateOf } from './make-state.ts';
import { serveDashboard } from './server.ts';

interface DashboardFlags extends ConnectionFlags {
  readonly port: number;
  readonly open: boolean;
  readonly allowActions?: boolean;
}

/** Serves until `abort`, and resolves with 130 then. Rejects if the cluster cannot be read at all, or the port is in use. */
export async function runDashboard(flags: DashboardFlags, parts: SessionParts): Promise<number> {
  const { clock, output, abort } = parts;
  const missing: string[] = [];
  const onDenied = (error: unknown): void => void missing.push(messageOf(error));
  return await inSession(flags, { ...parts, onDenied }, 'refit-dashboard', async (session) => {
    let seen: Seen = { status: { leader: { state: 'unknown' }, plans: [] }, rollouts: [], missing };
    const allowsActions = flags.allowActions === true;
    await using server = await serving({
      port: flags.port,
      explain: (plan, node) => explainNode(seen.status, plan, node, clock.now()),
      act: allowsActions ? async (request) => await carryOut(request, flags, parts) : undefined,
    });
    output.write(`The dashboard is at ${server.url}\nCtrl-C ends it.\n`);
    if (flags.open) openBrowser(server.url);
    const waking: { wake?: () => void } = {};
    const rollouts = await followRollouts(session, missing, () => waking.wake?.());
    try {
      const onWake = (wake: () => void): void => {
        waking.wake = wake;
      };
      for await (const status of watchPlans(session, clock, { isEndless: true, onWake })) {
        seen = { status, rollouts: rollouts(), missing };
        server.publish({ ...stateOf(seen, clock.now()), allowsActions });
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

/** Returns a function that lists the NodeRollouts. Without the kind or the right there are none. */
async function followRollouts(
  { client, abort }: Session,
  missing: string[],
  onChange: () => void,
): Promise<() => readonly NodeRollout[]> {
  try {
    await tryList(client, nodeRollouts, { abort });
  } catch (error) {
    if (isForbidden(error)) missing.push(messageOf(error));
    else if (!isNotFound(error)) throw error;
    return () => [];
  }
  const informer = createInformer(client, nodeRollouts);
  void informer.run(abort);
  informer.addHandler({ added: onChange, updated: onChange, deleted: onChange });
  return () => informer.list();
}

/** The program that opens a URL, where it is not that of freedesktop.org. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: 'open',
  win32: 'explorer',
};

/** A machine without a browser has no such command; the URL is printed anyhow. */
function openBrowser(url: string): void {
  const { [process.platform]: command = 'xdg-open' } = OPENERS;
  const child = spawn(command, [url], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
