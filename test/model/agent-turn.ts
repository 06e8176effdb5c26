/** Runs the real agent for one turn of its loop, with a host and an object that are values of the model. */
import { Agent } from '../../src/agent/agent.ts';
import type { Journal } from '../../src/agent/journal.ts';
import type { Cordoner, Maintenance } from '../../src/agent/maintenance/node-maintenance.ts';
import type { SignalObject } from '../../src/agent/object/signal-object.ts';
import type { ServiceFacts } from '../../src/agent/service/host.ts';
import type { BesideK0s } from '../../src/agent/step-input.ts';
import type { Step, StepOutcome } from '../../src/agent/steps/step.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { silentLogger } from '../../src/util/log.ts';
import { NOW } from './cluster.ts';

/**
 * The timeout in milliseconds. The agent acts at half of the timeout and at its end, so the clock of the model shows 0,
 * 1 or 2.
 */
export const RESTART_TIMEOUT_MS = 2;

/** The soak time in milliseconds. It ends at the middle of the timeout. */
const SOAK_MS = 1;

/**
 * The input of the agent in this turn, and functions that receive its effects in the order in which the agent causes
 * them.
 */
export interface Turn {
  /** The journal on the disk. */
  readonly journal: Journal;
  /** Undefined while the agent has not read the object. */
  readonly object: KubeObject | undefined;
  readonly facts: ServiceFacts;
  readonly cordoner: Cordoner;
  /** True if Refit has cordoned the Node at this moment. */
  readonly hasCordon: boolean;
  /** Milliseconds of a monotonic clock since the last restart of the service, or of the agent. */
  readonly elapsedMs: number;
  /** Reports whether the staging path contains this version, and the version was run there. */
  holds(version: string): boolean;
  /** Fetches the version ahead. If `version` is undefined, discards what was fetched. */
  fetchAhead(version: string | undefined): void;
  /** How the agent treats k0s's own agent, as its flag says. */
  readonly beside: BesideK0s;
  isLeft(created: string): boolean;
  leave(created: string): void;
  save(journal: Journal): void;
  perform(step: Step): StepOutcome;
  /** Throws the error with which the API server or the network answers. */
  write(object: KubeObject): void;
}

/** Created only once, because the creation takes longer than many parts of a turn. */
const OVER = new DOMException('the turn is over', 'AbortError');

export async function takeTurn(turn: Turn): Promise<void> {
  const stop = new AbortController();
  let looked = false;
  const agent = new Agent({
    object: objectFor(turn, () => stop.abort(OVER)),
    loadJournal: async () => await Promise.resolve(turn.journal),
    saveJournal: async (journal) => await Promise.resolve(turn.save(journal)),
    observe: async () => {
      stop.signal.throwIfAborted();
      looked = true;
      return await Promise.resolve(turn.facts);
    },
    searchService: () => undefined,
    ageOf: async () => await Promise.resolve(0),
    perform: async (step) => await Promise.resolve(turn.perform(step)),
    maintenance: maintenanceIn(turn),
    prefetcher: {
      follow: (asked) => turn.fetchAhead(asked?.command.version),
      stop: async () => await Promise.resolve(),
      holds: async ({ version }) => await Promise.resolve(turn.holds(version)),
    },
    times: {
      restartTimeoutMs: RESTART_TIMEOUT_MS,
      soakMs: SOAK_MS,
      readyTimeoutMs: RESTART_TIMEOUT_MS,
    },
    accepts: ['k0supdate'],
    beside: turn.beside,
    finished: {
      endOf: async ({ created }) =>
        await Promise.resolve(turn.isLeft(created) ? 'left' : undefined),
      add: async ({ created }, end) =>
        await Promise.resolve(end === 'left' ? turn.leave(created) : undefined),
    },
    clock: {
      now: () => NOW,
      // A restarted agent counts from its start, because time passes between its start and its first observation.
      monotonic: () => (looked ? turn.elapsedMs : 0),
      schedule: () => () => undefined,
    },
    random: () => 0,
    log: silentLogger,
  });
  await agent.run(stop.signal);
}

/** Answers only the questions of the agent. The actions are separate steps of the model. */
function maintenanceIn({ cordoner, hasCordon }: Turn): Maintenance {
  return {
    whoCordons: async () => await Promise.resolve(cordoner),
    // The Node is not needed. The object shows whether it is Ready, but not since when.
    readNode: async () => await Promise.resolve(undefined),
    hasCordon: async () => await Promise.resolve(hasCordon),
    cordonAndDrain: async () => await Promise.reject(new Error('a step of the model')),
    uncordon: async () => await Promise.reject(new Error('a step of the model')),
  };
}

/** The loop reads `version` before each turn and before it sleeps. At the second read, the single turn is over. */
function objectFor(turn: Turn, endOfTurn: () => void): SignalObject {
  let asked = 0;
  return {
    newest: turn.object,
    isKnown: turn.object !== undefined,
    get version(): number {
      if (asked++ > 0) endOfTurn();
      return asked;
    },
    onChange: () => () => undefined,
    follow: async () => await Promise.resolve(),
    write: async (object) => await Promise.resolve(turn.write(object)),
    refresh: async () => await Promise.resolve(),
  };
}
