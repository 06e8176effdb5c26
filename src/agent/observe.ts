/** Gathers exactly the facts on which the next decision depends. */
import { kubeletVersionOf } from '../kube/resources.ts';
import {
  agentPolicyFor,
  decodeReport,
  decodeSignal,
  type SignalCommand,
  type SignalData,
} from '../signal/annotations.ts';
import { rfc3339 } from '../util/clock.ts';
import { defined } from '../util/json.ts';
import type { Prefetcher } from './download/prefetcher.ts';
import { isStaged, type Journal, type Work } from './journal.ts';
import type { Maintenance } from './maintenance/node-maintenance.ts';
import { asksForCordon, asksForService, asksWhoCordons } from './next-step.ts';
import type { SignalObject } from './object/signal-object.ts';
import { isSameProcess, type ProcessId, type ServiceFacts } from './service/host.ts';
import { type KubeletHeartbeatParts, kubeletHeartbeat } from './service/kubelet-heartbeat.ts';
import type { FinishedSignals } from './state/finished-signals.ts';
import type { StepInput } from './step-input.ts';
import { ageVeto, futureVeto, type Veto, vetoOf } from './veto.ts';

export interface ObserverParts
  extends KubeletHeartbeatParts,
    Pick<StepInput, 'times' | 'accepts' | 'beside'> {
  readonly searchService: (work: Work) => ProcessId | undefined;
  readonly object: SignalObject;
  readonly observe: (journal: Journal) => Promise<ServiceFacts>;
  readonly maintenance: Maintenance;
  /** The rules of this host, which no API object overrides. If the member is absent, the host has no rules. */
  readonly veto?: Veto;
  /** Returns why the new version cannot run on this host; undefined if it can. The agent calls this for a new signal. */
  readonly groundVeto?: (command: SignalCommand, running?: string) => string | undefined;
  readonly finished?: Pick<FinishedSignals, 'endOf' | 'add'>;
  readonly prefetcher?: Pick<Prefetcher, 'follow' | 'stop' | 'holds'>;
}

/**
 * If a signal has a creation time in the future, it waits at most this many milliseconds until the clock of this host
 * is set. The clock of a host is often set some time after the host has started.
 */
const CLOCK_PATIENCE_MS = 10 * 60_000;

export interface StepInputs {
  /** Returns the signal on the object. Until the object has been read, it returns the signal from the journal. */
  readonly signalFor: (journal: Journal) => SignalData | undefined;
  /**
   * Gathers the facts. `steady` returns the time of the agent's steady clock in milliseconds. Rejects if the decision
   * depends on a request that the API server does not answer.
   */
  readonly gather: (
    journal: Journal,
    steady: () => number,
    stop: AbortSignal,
  ) => Promise<Omit<StepInput, 'now'>>;
}

/** Returns the functions that gather facts. They remember earlier values to compare them with the next values. */
export function stepInputs(parts: ObserverParts): StepInputs {
  const { object, observe, maintenance, times, accepts, beside, finished, prefetcher } = parts;
  const withExits = countExits(parts);
  const heartbeatOf = kubeletHeartbeat(parts);
  const rulingOn = rulings(parts);
  const signalFor: StepInputs['signalFor'] = (journal) => {
    return object.isKnown ? decodeSignal(object.newest?.metadata.annotations) : signalIn(journal);
  };
  /**
   * Returns who cordons the node, or whether Refit cordoned it, if the next decision depends on that fact. Otherwise
   * returns no facts.
   */
  const cordonFacts = async (
    known: Pick<StepInput, 'signal' | 'journal' | 'host' | 'policy'>,
    stop: AbortSignal,
  ) => {
    const { signal, journal, host, policy } = known;
    if (asksWhoCordons(signal, journal)) {
      if (policy.cordoning !== undefined) return { cordoner: policy.cordoning };
      if (object.newest === undefined) return { cordoner: 'unknown' } as const;
      return { cordoner: await maintenance.whoCordons(stop) };
    }
    return asksForCordon(signal, journal, host)
      ? { isCordoned: await maintenance.hasCordon(stop) }
      : {};
  };
  const gather: StepInputs['gather'] = async (journal, steady, stop) => {
    const signal = signalFor(journal);
    const policy =
      signal === undefined
        ? {}
        : agentPolicyFor(object.newest?.metadata.annotations, signal.created);
    const seen = asksForService(signal, journal) ? await observe(journal) : {};
    const heartbeat = await heartbeatOf(journal, seen, steady, stop);
    const host = withExits(seen, journal, heartbeat.staleMs === 0);
    const node = { ...heartbeat, ...(await cordonFacts({ signal, journal, host, policy }, stop)) };
    const isNew = signal !== undefined && journal.phase === 'idle';
    const isStaged = isNew && (await prefetcher?.holds(signal.command)) === true;
    const ended = signal && (await finished?.endOf(signal));
    const report = signal && decodeReport(object.newest?.metadata.annotations, signal.created);
    const isReported = report?.from !== undefined;
    const reportedSnapshot = report?.etcdSnapshot;
    const ruling = signal === undefined ? {} : rulingOn(signal, journal, host, steady());
    const ours = defined({
      beside,
      ended,
      isReported,
      reportedSnapshot,
      isStaged: isStaged || undefined,
    });
    return { signal, policy, journal, host, node, times, accepts, ...ruling, ...ours };
  };
  return { signalFor, gather };
}

/** Returns the signal to which the journal belongs, with the last status that it had. */
function signalIn(journal: Journal): SignalData | undefined {
  if (journal.phase === 'idle') return undefined;
  const { entered, work } = journal;
  if (entered === undefined) return { ...work.signal };
  const status = { status: entered.status, timestamp: rfc3339(entered.at) };
  return { ...work.signal, status };
}

/**
 * Decides whether a signal is refused or has to wait. The age of a signal is checked only before its work starts, because the work may
 * take long.
 */
function rulings({ veto: rules, groundVeto, clock, object }: ObserverParts) {
  /** The signal that waits for the clock, and the time since which it waits, in milliseconds of the steady clock. */
  let waiting: { readonly created: string; readonly since: number } | undefined;
  return (signal: SignalData, journal: Journal, { running }: ServiceFacts, now: number) => {
    if (rules === undefined) return {};
    const { command, created } = signal;
    const isNew = journal.phase === 'idle';
    const kubelet =
      command.kind === 'kubeadmupdate' && object.newest
        ? kubeletVersionOf(object.newest)
        : undefined;
    const from = isNew || isStaged(journal) ? (running?.version ?? kubelet) : journal.work.from;
    const vetoOfNew = (): string | undefined =>
      ageVeto(signal, clock.now(), rules) ?? groundVeto?.(command, running?.version);
    const veto = vetoOf(command, from, rules) ?? (isNew ? vetoOfNew() : undefined);
    if (veto !== undefined) return { veto };
    const early = isNew ? futureVeto(signal, clock.now(), rules) : undefined;
    if (early === undefined) return {};
    if (waiting?.created !== created) waiting = { created, since: now };
    return now < waiting.since + CLOCK_PATIENCE_MS ? { early } : { veto: early };
  };
}

/**
 * The milliseconds between two searches of the process table. The pause is long because a search is expensive. The
 * count of exits need not be exact.
 */
const SEARCH_EVERY_MS = 250;

/**
 * Returns a function that adds two facts: how many processes have ended, and how long the service has not answered. The
 * process that the restart ended does not count. The time without an API server does not count either.
 */
export function countExits({
  searchService,
  clock,
}: Pick<ObserverParts, 'searchService' | 'clock'>) {
  const processes = new Set<string>();
  let searchedAt = Number.NEGATIVE_INFINITY;
  let lostAt: number | undefined;
  const search = (work: Work, now: number): ProcessId | undefined => {
    if (now - searchedAt < SEARCH_EVERY_MS) return undefined;
    searchedAt = now;
    return searchService(work);
  };
  return (host: ServiceFacts, journal: Journal, isApiAway = false): ServiceFacts => {
    if (journal.phase !== 'restarted' && journal.phase !== 'soaking') {
      processes.clear();
      lostAt = undefined;
      return host;
    }
    const now = clock.monotonic();
    lostAt = host.running === undefined && !isApiAway ? (lostAt ?? now) : undefined;
    const { process, fresh, work } = journal;
    const alive = host.service ?? search(work, now);
    const isOld = isSameProcess(alive, process) || isSameProcess(alive, work.original);
    if (alive !== undefined && !isOld) processes.add(`${alive.pid} ${alive.started}`);
    // Every process except the last one has ended. The last process counts as well if the agent was watching a process
    // and now finds no process.
    const exits = processes.size - (fresh !== undefined && alive === undefined ? 0 : 1);
    return {
      ...host,
      ...(exits > 0 && { exits }),
      ...(lostAt !== undefined && { unansweredMs: now - lostAt }),
    };
  };
}
