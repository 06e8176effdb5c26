/** Runs the agents of this host. Restarts them when the name of the host in the cluster changes. */

import { existsSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { keepConfigured } from '../../agent/configuration/keep-configured.ts';
import { keptBundles } from '../../agent/download/kept-bundles.ts';
import { ROOT } from '../../agent/host-parts.ts';
import { leaseDelegation } from '../../agent/maintenance/lease-delegation.ts';
import { ownObject } from '../../agent/object/own-object.ts';
import {
  type ChangeRelay,
  changeRelay,
  type SignalObject,
} from '../../agent/object/signal-object.ts';
import type { FindProcedure } from '../../agent/procedure.ts';
import { controlNodeName, nodeName } from '../../agent/registration/host-name.ts';
import { describeController, keepRegistered } from '../../agent/registration/keep-registered.ts';
import { askService, STATUS_TIMEOUT_MS } from '../../agent/service/trusted-service.ts';
import { loadJournal } from '../../agent/state/journal-file.ts';
import { keptBinary } from '../../agent/state/kept-binary.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { nodes } from '../../kube/resources.ts';
import { describeProblem, isForbidden, isNotFound } from '../../kube/status-error.ts';
import { createRoamingClient } from '../../kube/transport/roaming-client.ts';
import { controlNodes, nodeNameOf, SIGNAL_OBJECTS } from '../../signal/names.ts';
import { backoffDelay, sleep } from '../../util/clock.ts';
import type { ErrorCode } from '../../util/errors.ts';
import { aborted, onAbort } from '../../util/waits.ts';
import { type AgentHost, announcer, createObjectAgent, serveNode } from './object-agent.ts';

interface HostBasis extends Omit<AgentHost, 'client' | 'userAgent' | 'delegation'> {
  readonly config: ClusterConfig;
  /** Finds the procedure of the host; undefined if k0s installs its versions. */
  readonly findProcedure?: FindProcedure | undefined;
}

/**
 * Runs until `stop` aborts. It rejects if the object cannot be read at the start, even after retries, or if a journal
 * cannot be read.
 */
export async function serveHost(host: HostBasis, stop: AbortSignal): Promise<void> {
  const over = new AbortController();
  const ending = AbortSignal.any([stop, over.signal]);
  const { options, places } = host;
  const nameOf = options.object === 'node' ? nodeName : controlNodeName;
  const name = (): string => options.name ?? nameOf(places.current, process.env);
  try {
    await Promise.all([
      options.procedure === 'k0s' && places.keepSearching(ending),
      workForValue(places, name, async (own, abort) => await serveObject(host, own, abort), ending),
    ]);
  } finally {
    over.abort();
  }
}

/** The most bytes of one answer. The agent reads only single objects, and the pods of its own node in pages. */
const MOST_ANSWER_BYTES = 32 * 1024 * 1024;
const MOST_ITEMS = 10_000;

async function serveObject(basis: HostBasis, name: string, stop: AbortSignal): Promise<void> {
  const { options, paths, places, clock, config, version } = basis;
  const log = basis.log.child({ node: name });
  const userAgent = `refit-agent/${version} (${name})`;
  using client = createRoamingClient(config, {
    clock,
    userAgent,
    mostBytes: MOST_ANSWER_BYTES,
    mostItems: MOST_ITEMS,
  });
  const kept = keptBinary({ record: paths.kept, files, clock, log });
  const bundles = keptBundles({
    list: paths.bundles,
    imagesDirectory: () => join(places.current.dataDirectory, 'images'),
    files,
    clock,
    log,
    running: async () =>
      (await askService(places.current.statusSocket, STATUS_TIMEOUT_MS).catch(() => undefined))
        ?.version,
  });
  const own = { kept, keptBundles: bundles };
  const host = { ...basis, client, userAgent, log, ...own, delegation: leaseDelegation(client) };
  const { phase } = await loadJournal(paths.journal);
  // The object is checked only if no work was started before. Started work continues without an API server, because the
  // API server itself may run on this host.
  if (phase === 'idle' && !existsSync(paths.configurationJournal))
    await checkObject(host, name, stop);
  log.info('agent started', { version, object: options.object });
  await (options.object === 'node'
    ? serveWorker(host, name, stop)
    : serveController(host, name, stop));
}

async function serveWorker(
  host: AgentHost & Pick<HostBasis, 'findProcedure'>,
  name: string,
  stop: AbortSignal,
): Promise<void> {
  const object = ownObject({ ...host, resource: nodes, name });
  const { journal } = host.paths;
  const configured = keepConfigured(host, name, object, stop);
  if (host.findProcedure) {
    const { options } = host;
    const procedure = await host.findProcedure(name, { root: ROOT, options }, stop);
    const own = { ...host, procedure };
    const announcement = announcer(own, object);
    const served = { object, announcement, journal, accepts: procedure.accepts };
    const agent = createObjectAgent(own, served, () => name);
    await Promise.all([agent.run(stop), announcement.keep(stop), configured]);
    return;
  }
  const announcement = announcer(host, object);
  const accepts = ['k0supdate', 'airgapupdate'] as const;
  await Promise.all([
    serveNode(host, name, { object, announcement, journal, accepts }, stop),
    announcement.keep(stop),
    configured,
  ]);
}

/**
 * The number of refusals after which the agent stops with an error. With the pauses it waits about 15 seconds, because
 * roles may be created after the agent.
 */
const MOST_REFUSALS = 6;

/**
 * Resolves when the object was read or is missing. It rejects for a lasting problem, such as a
 * server without the kind or a missing right.
 */
async function checkObject(host: AgentHost, name: string, abort: AbortSignal): Promise<void> {
  const { client, options, clock, random, log } = host;
  for (let failures = 0; !abort.aborted; failures++) {
    try {
      await client.get(SIGNAL_OBJECTS[options.object], name, { abort });
      return;
    } catch (error) {
      if (abort.aborted) return;
      const mayCome =
        isNotFound(error) &&
        (options.object === 'controlnode' || error.status.details?.name !== undefined);
      if (mayCome) return log.info('the object does not exist yet', { object: options.object });
      const problem = describeProblem(error);
      if (LASTING.includes(problem.code) || (isForbidden(error) && failures + 1 >= MOST_REFUSALS))
        throw error;
      const pauseMs = backoffDelay(failures, { base: 500, cap: 15_000, random });
      log.warn('cannot read the object at the start; trying again', {
        reason: problem.line,
        pauseMs,
      });
      await sleep(clock, pauseMs, abort).catch(() => undefined);
    }
  }
}

/**
 * The codes of errors that do not disappear with time. Errors in the kubeconfig are not in this list, because a
 * certificate or token that the kubeconfig names may still be created.
 */
const LASTING: readonly ErrorCode[] = ['REFIT_NO_CRD', 'REFIT_FILE', 'REFIT_USAGE'];

/**
 * Runs one agent for the ControlNode of this host, and one agent for its Node. The agent of the Node installs the
 * airgap bundles. It runs until `stop` aborts.
 */
export async function serveController(
  host: AgentHost,
  name: string,
  stop: AbortSignal,
): Promise<void> {
  const object = ownObject({ ...host, resource: controlNodes, name });
  const nodeName = (): string | undefined => nodeNameOf(object.newest);
  const announcement = announcer(host, object);
  const { journal } = host.paths;
  const ownNode = changeRelay();
  const own = { object, ownNode, announcement, journal, accepts: ['k0supdate'] } as const;
  /**
   * The last known name of the Node; undefined before the ControlNode was read for the first time. The name is kept
   * after the ControlNode was deleted, because Refit must still remove its own cordon from the Node.
   */
  let said: { readonly nodeName: string | undefined } | undefined;
  const agent = createObjectAgent(host, own, () => {
    if (object.newest) said = { nodeName: nodeName() };
    if (!said) throw new Error(`ControlNode ${name} has not been seen yet`);
    return said.nodeName;
  });
  const askStatus = async (socket: string) => await askService(socket, STATUS_TIMEOUT_MS);
  const described = { ...host, name, object, askStatus };
  await Promise.all([
    agent.run(stop),
    keepRegistered(
      { ...host, object, describe: async () => await describeController(described) },
      stop,
    ),
    announcement.keep(stop),
    workForValue(
      object,
      nodeName,
      async (own, abort) => await serveOwnNode(host, own, ownNode, abort),
      stop,
    ),
  ]);
}

/**
 * Runs the agent for the Node of a controller. k0s's own leaders send airgap bundles only to Nodes, even if the updates
 * of the host are sent to a ControlNode. The agent of the ControlNode is notified of the changes of the Node.
 */
async function serveOwnNode(
  host: AgentHost,
  name: string,
  { changed }: ChangeRelay,
  stop: AbortSignal,
): Promise<void> {
  const object = ownObject({ ...host, resource: nodes, name });
  using listening = new DisposableStack();
  listening.defer(object.onChange(changed));
  const options = { object, journal: host.paths.airgapJournal, accepts: ['airgapupdate'] } as const;
  await serveNode({ ...host, log: host.log.child({ for: `Node ${name}` }) }, name, options, stop);
}

/**
 * Runs `work` for each value of `current`, one run at a time. It aborts a run when the value changes. It rejects if a
 * run that was not aborted rejects.
 */
export async function workForValue(
  source: Pick<SignalObject, 'onChange'>,
  current: () => string | undefined,
  work: (value: string, abort: AbortSignal) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    const now = current();
    const over = new AbortController();
    const check = (): void => {
      if (stop.aborted || current() !== now) over.abort();
    };
    using listening = new DisposableStack();
    listening.defer(source.onChange(check));
    listening.use(onAbort(stop, check));
    // The value may have changed before the subscription.
    check();
    if (now !== undefined)
      await work(now, over.signal).catch((error: unknown) => {
        if (!over.signal.aborted) throw error;
      });
    await aborted(over.signal);
  }
}
