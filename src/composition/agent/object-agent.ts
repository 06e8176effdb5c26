/** Creates the agent of one object, with everything that it needs from the host. */
import * as files from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Agent, type AgentParts } from '../../agent/agent.ts';
import { diskRoom } from '../../agent/download/disk-room.ts';
import { type DownloadChecksParts, downloadChecks } from '../../agent/download/download-checks.ts';
import type { DownloadLimits } from '../../agent/download/fetch.ts';
import type { KeptBundles } from '../../agent/download/kept-bundles.ts';
import { createPrefetcher } from '../../agent/download/prefetcher.ts';
import { type HostParts, ROOT } from '../../agent/host-parts.ts';
import { IDLE, type Journal } from '../../agent/journal.ts';
import { keepDelegated } from '../../agent/maintenance/lease-delegation.ts';
import { nodeMaintenance } from '../../agent/maintenance/node-maintenance.ts';
import { type PresenceKeeper, presenceKeeper } from '../../agent/object/keep-presence.ts';
import { reasonReporter } from '../../agent/object/reason-report.ts';
import type { ChangingObject, SignalObject } from '../../agent/object/signal-object.ts';
import type { AgentOptions } from '../../agent/options.ts';
import { perform } from '../../agent/perform-step.ts';
import type { HostProcedure } from '../../agent/procedure.ts';
import { oldContainerdDropIns } from '../../agent/service/containerd-drop-ins.ts';
import { isSameProcess, type ProcessId } from '../../agent/service/host.ts';
import { cgroupV1Of, groundVeto } from '../../agent/service/kubelet-ground.ts';
import { observeHost, searchService } from '../../agent/service/observe-host.ts';
import { ageOf, bootId, findProcess } from '../../agent/service/processes.ts';
import { watchForSocket } from '../../agent/service/status-socket.ts';
import {
  askService,
  STATUS_TIMEOUT_MS,
  type TrustedAnswer,
} from '../../agent/service/trusted-service.ts';
import { type OwnAgentFacts, ownAgentOf } from '../../agent/service/worker-profile.ts';
import { type FinishedSignals, finishedSignals } from '../../agent/state/finished-signals.ts';
import { keepSpare, loadJournal, saveJournal } from '../../agent/state/journal-file.ts';
import type { KeptBinary } from '../../agent/state/kept-binary.ts';
import { upgradePathsOf } from '../../agent/state/state-directory.ts';
import { fileTrust } from '../../agent/state/trusted-path.ts';
import { afterReboot } from '../../agent/transitions.ts';
import type { AgentPresence, CgroupV1, KeptAnnouncement } from '../../signal/agent-presence.ts';
import type { SignalCommand, SignalData } from '../../signal/annotations.ts';
import { SIGNAL_OBJECTS } from '../../signal/names.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';

export interface AgentHost extends HostParts {
  /** Manages the previous binary of the host. All agents of the host share this object. */
  readonly kept?: KeptBinary;
  /** Manages the airgap bundles of the host. All agents of the host share this object. */
  readonly keptBundles?: KeptBundles;
  /** The procedure of this host; undefined if k0s installs its versions. */
  readonly procedure?: HostProcedure;
}

interface ServedObject {
  readonly object: SignalObject;
  /** The Node of the host. Undefined if `object` itself is that Node. */
  readonly ownNode?: ChangingObject;
  /**
   * Adds the announcement of the agent to its last reports on signals. Undefined if another object has the
   * announcement.
   */
  readonly announcement?: PresenceKeeper;
  /** The path of the journal. Each agent needs its own journal. */
  readonly journal: string;
  readonly accepts: readonly SignalCommand['kind'][];
}

/**
 * The milliseconds after the last report of the agent until it collects garbage. After this time, the connections and
 * requests of the report have ended.
 */
const SETTLE_MS = 2_000;

/**
 * The number of collections after which V8 drops the compiled code of functions that were not
 * called.
 */
const COLLECTIONS = 8;

/**
 * Collects all garbage. An agent is idle for months, and V8 collects only when the heap grows. It
 * does nothing without Node's option `--expose-gc`.
 */
function collectGarbage(): void {
  for (let count = 0; count < COLLECTIONS; count++)
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Works on the Node `name` until `stop` aborts. It rejects only if the journal cannot be read. */
export async function serveNode(
  host: AgentHost,
  name: string,
  options: ServedObject,
  stop: AbortSignal,
) {
  const agent = createObjectAgent(host, options, () => name);
  await Promise.all([agent.run(stop), keepDelegated({ ...host, node: options.object }, stop)]);
}

/**
 * Returns the keeper of the annotation that says which agent runs on the host. Call this function only for the object whose signals restart
 * the service.
 */
export function announcer(host: AgentHost, object: SignalObject): PresenceKeeper {
  const { version, clock, options, places, userAgent } = host;
  const resource = SIGNAL_OBJECTS[options.object];
  const since = rfc3339(clock.now());
  // When an agent asks the service of a worker, the service sends a request to the API server before it answers. So an
  // idle agent asks only once for facts that do not change.
  let { binary } = host;
  const placeFor: DownloadChecksParts['placeFor'] = async (kind) => {
    if (kind === 'airgapupdate') return { directory: places.current.dataDirectory, present: [] };
    binary ??= (await observeHost(host, IDLE)).binary;
    if (binary === undefined) return undefined;
    const { staged, part, previous } = upgradePathsOf(binary);
    const kept = async () => {
      const { sha256, gone } = (await host.kept?.facts()) ?? {};
      return sha256 === undefined || gone !== undefined ? undefined : { path: previous, sha256 };
    };
    return { directory: dirname(binary), present: [staged, part], kept };
  };
  const limits = limitsOf(options);
  const checks = downloadChecks({ clock, limits, userAgent, environment: process.env, placeFor });
  const { configurable } = options;
  const known = { version, since, ...(options.excluded ? { excluded: true as const } : {}) };
  const own = { ...known, ...(configurable.length > 0 && { configurable }) };
  const whose = ownAgentWatch(host);
  const presence = async (): Promise<AgentPresence> => {
    if (host.procedure) return { ...own, procedure: host.procedure.name };
    const cgroupV1 = await cgroupV1On(host, whose);
    const oldContainerd = oldContainerdDropIns();
    const ground = {
      ...(cgroupV1 !== undefined && { cgroupV1 }),
      ...(oldContainerd.length > 0 && { oldContainerd }),
    };
    if (options.beside !== 'replace') {
      const { ownAgent, ownAgentDoubt } = await whose();
      if (ownAgent) return { ...known, ...ground, aside: true };
      if (ownAgentDoubt !== undefined)
        return { ...known, ...ground, aside: true, doubt: ownAgentDoubt };
    }
    return {
      ...own,
      ...ground,
      checked: await checks(object.newest?.metadata.annotations),
      ...(await keptFacts.recent()),
    };
  };
  const keptFacts = factsOfKept(host);
  const room = async (): Promise<number | undefined> => {
    const directory = host.procedure
      ? options.stateDirectory
      : (await placeFor('k0supdate'))?.directory;
    return directory === undefined
      ? undefined
      : await diskRoom(directory, limits.reserveBytes, files).free();
  };
  return presenceKeeper({ ...host, resource, object, presence, room, kept: keptFacts.current });
}

/**
 * Returns whether the kubelet runs on cgroup v1, and whether it is allowed to. The service is asked for its version
 * only if the version may change the result.
 */
async function cgroupV1On(
  { places, options }: HostParts,
  whose: () => Promise<WatchedFacts>,
): Promise<CgroupV1 | undefined> {
  const { dataDirectory } = places.current;
  const ground = { dataDirectory, allowed: options.veto.allowCgroupV1 };
  const said = cgroupV1Of(ground);
  return said === 'refused' ? cgroupV1Of({ ...ground, running: (await whose()).version }) : said;
}

type WatchedFacts = OwnAgentFacts & Partial<Pick<TrustedAnswer, 'version'>>;

/**
 * Returns a function that asks the service whether it runs its own agent. On a worker, it asks each process of the
 * service only once, because each answer causes a request to the API server.
 */
function ownAgentWatch({
  places,
  paths,
  options: { object },
}: HostParts): () => Promise<WatchedFacts> {
  let last: { readonly process: ProcessId; readonly facts: WatchedFacts } | undefined;
  return async () => {
    const isKnown =
      object === 'node' &&
      last?.facts.ownAgent !== undefined &&
      isSameProcess(findProcess(last.process.pid), last.process);
    if (last !== undefined && isKnown) return last.facts;
    const answer = await askService(places.current.statusSocket, STATUS_TIMEOUT_MS).catch(
      () => undefined,
    );
    if (answer === undefined) return {};
    const { version } = answer;
    const facts = { version, ...(await ownAgentOf(answer, places.current, paths.ownAgent)) };
    last = { process: answer.process, facts };
    return facts;
  };
}

function limitsOf({ limits, veto }: AgentOptions): DownloadLimits {
  const { requireHttps, allowUnverified, allowedHosts } = veto;
  return {
    ...limits,
    ...(requireHttps && { requireHttps }),
    httpsWithoutHash: !allowUnverified,
    allowedHosts,
  };
}

/**
 * Creates the agent. `nodeName` returns the name of the host's Node, or undefined if no pods run on
 * the host. It throws while the name is not known.
 */
export function createObjectAgent(
  host: AgentHost,
  own: ServedObject,
  nodeName: () => string | undefined,
): Agent {
  const { options, places, restarter, clock } = host;
  const { object, ownNode, journal, accepts } = own;
  const { stateDirectory, times, veto } = options;
  const beside = host.procedure ? 'replace' : options.beside;
  const maintenance = nodeMaintenance({ ...host, nodeName });
  const effects = {
    ...host,
    stateDirectory,
    // The directory is read each time, because the service may restart with another data directory.
    get imagesDirectory() {
      return join(places.current.dataDirectory, 'images');
    },
    limits: limitsOf(options),
    // Without this check, a plan could name an allowed version and install another.
    checkForced: veto.lowestVersion !== undefined || veto.refuseDowngrade,
    environment: process.env,
    maintenance,
    files,
    fileTrust,
    tried: new Map<string, string>(),
  };
  const observe = async (current: Journal) => await observeHost(host, current);
  const { procedure } = host;
  const lent = {
    ...effects,
    root: ROOT,
    reportReason: reasonReporter({ ...host, object }),
    directory: join(stateDirectory, 'fetched'),
  };
  const carryOut: AgentParts['perform'] = async (step, current, abort) =>
    procedure
      ? await procedure.perform(step, current, lent, abort)
      : await perform(step, current, effects, abort);
  const prefetcher = createPrefetcher({ ...host, observe, perform: carryOut, veto, beside });
  return new Agent({
    ...host,
    object,
    ...(ownNode && { ownNode }),
    loadJournal: async () => {
      await keepSpare(journal);
      return afterReboot(await loadJournal(journal), bootId());
    },
    saveJournal: async (next) => await saveJournal(journal, next),
    observe,
    searchService,
    watchForSocket: (listener) => watchForSocket(places.current.statusSocket, listener),
    ageOf,
    accountOf: async ({ fresh, process: ended, work: { original, binary } }, ms) =>
      await restarter.account(fresh ?? ended ?? original, binary, clock.now() - ms),
    perform: carryOut,
    ...(accepts.includes('k0supdate') && { prefetcher }),
    maintenance,
    times,
    accepts,
    veto,
    groundVeto: (command, running) =>
      groundVeto(command, {
        dataDirectory: places.current.dataDirectory,
        allowed: veto.allowCgroupV1,
        running,
      }),
    beside,
    beforeLastReport: lastWork(host, own),
    onRest: () => void clock.schedule(SETTLE_MS, collectGarbage),
    finished: finishedBeside(journal, host),
  });
}

type KeptOfHost = Pick<AgentHost, 'kept' | 'keptBundles' | 'log'>;

/**
 * Returns the function that the agent calls before its last report on a signal. The next node waits for this report, so
 * the function only records the success, and removes nothing.
 */
function lastWork(
  host: KeptOfHost,
  { announcement }: ServedObject,
): NonNullable<AgentParts['beforeLastReport']> {
  return async (signal, status) => {
    await settleKept(host, signal, status);
    return (await announcement?.current()) ?? {};
  };
}

/**
 * Returns the finished signals, whose file is in the directory of the journal. When a signal is added, this object also
 * starts the time for which the previous binary and bundles are kept. This is necessary because a leader may have
 * written the end of the signal, or because the agent may have sent its last report before it recorded that time. Files
 * whose time is over are removed in the background, because they may be gigabytes large.
 */
function finishedBeside(journal: string, host: KeptOfHost): FinishedSignals {
  const finished = finishedSignals(join(dirname(journal), `finished-${basename(journal)}`));
  return {
    ...finished,
    async add(signal, end) {
      await finished.add(signal, end);
      await settleKept(host, signal, end);
      if (endsKept(signal, end)) void tendKept(host);
    },
  };
}

/** Returns true if an update of a binary has succeeded. After that, the agent does not roll back. */
function endsKept({ command }: Pick<SignalData, 'command'>, status: string): boolean {
  return status === 'Completed' && command.kind === 'k0supdate';
}

/**
 * Starts the time for which the previous binary and bundles are kept, if an update of a binary has succeeded. This
 * happens before the report, because the report contains the end of that time. It never rejects.
 */
async function settleKept(
  { kept, keptBundles, log }: KeptOfHost,
  signal: Pick<SignalData, 'command'>,
  status: string,
): Promise<void> {
  if (!endsKept(signal, status)) return;
  // If this fails, the previous binary stays until the next upgrade. The failure does not change the end of the signal.
  await kept?.settle().catch((error: unknown) =>
    log.warn('cannot record the time from which the previous binary is kept', {
      reason: messageOf(error),
    }),
  );
  await keptBundles?.settle(signal.command.version).catch((error: unknown) =>
    log.warn('cannot record the time from which the previous airgap bundle is kept', {
      reason: messageOf(error),
    }),
  );
}

/** Removes the previous binary and bundles if the time for which they are kept is over. It never rejects. */
async function tendKept({ kept, keptBundles, log }: KeptOfHost): Promise<void> {
  await kept
    ?.tend()
    .catch((error: unknown) =>
      log.warn('cannot remove the kept binary', { reason: messageOf(error) }),
    );
  await keptBundles
    ?.tend()
    .catch((error: unknown) =>
      log.warn('cannot remove the previous airgap bundle', { reason: messageOf(error) }),
    );
}

/**
 * The milliseconds for which the facts about the previous binary and bundles are cached. The facts change only with an
 * upgrade or after days, and each change is a write to the API server.
 */
const KEPT_FACTS_MS = 55_000;

/** Returns functions that return the facts to announce about the previous binary and bundles. */
function factsOfKept(host: KeptOfHost & { readonly clock: Clock }) {
  const { kept, keptBundles, clock, log } = host;
  let last: { readonly at: number; readonly facts: KeptAnnouncement } | undefined;
  let reads = 0;
  const tended = async (): Promise<KeptAnnouncement> => {
    const at = clock.monotonic();
    const read = ++reads;
    await tendKept(host);
    // The agent must announce itself even if the list of bundles cannot be read.
    const keptBundle = await keptBundles?.facts().catch((error: unknown) => {
      log.warn('cannot read the list of airgap bundles', { reason: messageOf(error) });
      return undefined;
    });
    const facts: KeptAnnouncement = defined({ kept: await kept?.facts(), keptBundle });
    // If a report has read the facts meanwhile, the facts of the report are newer, so the facts of this call are not
    // cached.
    if (read === reads) last = { at, facts };
    return facts;
  };
  return {
    /** Returns the present facts, and removes no file. Rejects if the facts cannot be read. */
    current: async (): Promise<KeptAnnouncement> => {
      // The report that contains these facts changes the object. The next announcement then removes the files whose
      // time is over.
      last = undefined;
      reads++;
      return defined({ kept: await kept?.facts(), keptBundle: await keptBundles?.facts() });
    },
    /**
     * Returns the facts if they were read within the last minute. Otherwise it removes the files whose time is over,
     * and reads the facts again. It does not reject if a file cannot be removed.
     */
    recent: async (): Promise<KeptAnnouncement> =>
      last !== undefined && clock.monotonic() - last.at < KEPT_FACTS_MS
        ? last.facts
        : await tended(),
  };
}
