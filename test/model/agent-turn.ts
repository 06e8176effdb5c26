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

/** Milliseconds; the agent acts in the middle and at the end of it, so the model's clock shows 0, 1 or 2. */
export const RESTART_TIMEOUT_MS = 2;

/** Over at the middle of the turn. */
const SOAK_MS = 1;

/** What the agent finds in this turn, and what becomes of all it does, in its own order. */
export interface Turn {
  /** On the disk. */
  readonly journal: Journal;
  /** Undefined while the agent has seen none. */
  readonly object: KubeObject | undefined;
  readonly facts: ServiceFacts;
  readonly cordoner: Cordoner;
  /** True where its Node bears a cordon of ours at this moment. */
  readonly hasCordon: boolean;
  /** Steady milliseconds since the last restart of the service, or of the agent. */
  readonly elapsedMs: number;
  /** True where the version lies at the staging path and has run. */
  holds(version: string): boolean;
  /** Undefined: discards what lies there. */
  fetchAhead(version: string | undefined): void;
  /** As its flag says. */
  readonly beside: BesideK0s;
  isLeft(created: string): boolean;
  leave(created: string): void;
  save(journal: Journal): void;
  perform(step: Step): StepOutcome;
  /** Throws what the API server or the network answers instead. */
  write(object: KubeObject): void;
}

/** Made once: to make one takes longer than much of a turn. */
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
      // A restarted agent counts from its start: time passes between that and its first observation.
      monotonic: () => (looked ? turn.elapsedMs : 0),
      schedule: () => () => undefined,
    },
    random: () => 0,
    log: silentLogger,
  });
  await agent.run(stop.signal);
}

/** What is asked; what is done is a step like any other. */
function maintenanceIn({ cordoner, hasCordon }: Turn): Maintenance {
  return {
    whoCordons: async () => await Promise.resolve(cordoner),
    // What the object tells of being Ready, it does not tell when.
    readNode: async () => await Promise.resolve(undefined),
    hasCordon: async () => await Promise.resolve(hasCordon),
    cordonAndDrain: async () => await Promise.reject(new Error('a step of the model')),
    uncordon: async () => await Promise.reject(new Error('a step of the model')),
  };
}

/** The loop asks for `version` before each turn and before it sleeps: the second time, the one turn is over. */
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
