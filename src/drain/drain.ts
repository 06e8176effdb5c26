/** Owns the drain of one node: everything that may be evicted is, until the node is empty of it. */
import type { KubeClient } from '../kube/client.ts';
import { pods } from '../kube/resources.ts';
import type { Pod } from '../kube/types.ts';
import { createInformer, type Informer } from '../kube/watch/informer.ts';
import type { Clock } from '../util/clock.ts';
import { sameJson } from '../util/json.ts';
import type { Logger } from '../util/log.ts';
import { DaemonSets } from './daemon-sets.ts';
import { Evictions } from './evictions.ts';
import { findOverdue } from './overdue.ts';
import { type DrainOptions, type RefusedPod, sortPods } from './pods.ts';
import { Returns } from './returns.ts';

export interface DrainProgress {
  /** Pods that still have to go, those on their way out included; 0 until they are counted. */
  readonly left: number;
  /** For people: what holds which pods; absent where nothing does. */
  readonly blockedBy?: string;
}

export interface DrainParts {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Ends the drain at any moment; what was evicted by then stays so. */
  readonly abort: AbortSignal;
  readonly onChange?: (progress: DrainProgress) => void;
}

/** The node holds pods that the options forbid to evict; the message names them all. */
export class DrainRefusedError extends Error {
  override readonly name = 'DrainRefusedError';
  readonly refused: readonly RefusedPod[];

  constructor(refused: readonly RefusedPod[]) {
    super(refused.map(({ pod, reason }) => `${pod} ${reason}`).join('; '));
    this.refused = refused;
  }
}

/**
 * Resolves once the node has no pod left that a drain evicts; cordon it before, or new ones come. Knows no deadline: it
 * tries for as long as a budget or a server refuses. Rejects with a DrainRefusedError before anything is evicted where
 * the options forbid to evict a pod, later where such a pod arrives; with the signal's reason where that aborts. Nothing
 * runs any more when it settles.
 */
export async function drainNode(name: string, options: DrainOptions, parts: DrainParts): Promise<void> {
  const ending = new AbortController();
  const abort = AbortSignal.any([parts.abort, ending.signal]);
  const { client, clock, random } = parts;
  const log = parts.log.child({ node: name });
  const fieldSelector = `spec.nodeName=${name}`;
  const view = createInformer(client, pods, { fieldSelector, clock, random, logger: log });
  const following = view.run(abort);
  const drain = new Drain(view, options, { ...parts, log, abort });
  try {
    await view.whenSynced(abort);
    await drain.run();
  } finally {
    ending.abort();
    await Promise.all([following, drain.ended()]);
  }
}

/** One look after the other: each change of the node's pods, and each answer to an eviction, is a reason to look again. */
class Drain {
  readonly #view: Informer<Pod>;
  readonly #options: DrainOptions;
  readonly #parts: DrainParts;
  readonly #daemonSets: DaemonSets;
  readonly #evictions: Evictions;
  readonly #returns = new Returns();
  #stopTimer: () => void = () => undefined;
  #changed = Promise.withResolvers<void>();
  #told: DrainProgress | undefined;

  constructor(view: Informer<Pod>, options: DrainOptions, parts: DrainParts) {
    this.#view = view;
    this.#options = options;
    this.#parts = parts;
    this.#daemonSets = new DaemonSets(parts.client);
    this.#evictions = new Evictions({ ...parts, options, onChange: this.#wake });
  }

  async run(): Promise<void> {
    const { abort } = this.#parts;
    const stopListening = this.#view.addHandler({ added: this.#wake, updated: this.#wake, deleted: this.#wake });
    abort.addEventListener('abort', this.#wake, { once: true });
    try {
      while (!(await this.#isEmpty())) await this.#changed.promise;
    } finally {
      stopListening();
      this.#stopTimer();
      abort.removeEventListener('abort', this.#wake);
    }
  }

  async ended(): Promise<void> {
    await this.#evictions.ended();
  }

  readonly #wake = (): void => this.#changed.resolve();

  async #isEmpty(): Promise<boolean> {
    const { abort } = this.#parts;
    abort.throwIfAborted();
    // From here on whatever changes is a reason to look again, also while this look goes on.
    this.#changed = Promise.withResolvers<void>();
    await this.#daemonSets.learn(this.#view.list(), abort);
    const sorted = sortPods(this.#view.list(), this.#options, (pod) => this.#daemonSets.isOrphaned(pod));
    if (sorted.refused.length > 0) throw new DrainRefusedError(sorted.refused);
    const retrying = this.#returns.retrying(sorted.evict);
    const evict = sorted.evict.filter((pod) => !retrying.has(pod));
    this.#evictions.want(evict);
    this.#tell(evict.length, sorted.ending);
    return evict.length + sorted.ending.length === 0;
  }

  #tell(toEvict: number, ending: readonly Pod[]): void {
    const { clock, onChange } = this.#parts;
    const { text, nextInMs } = findOverdue(ending, clock.now());
    this.#stopTimer();
    this.#stopTimer = nextInMs === undefined ? () => undefined : clock.schedule(nextInMs, this.#wake);
    const blocks = [this.#evictions.blockedBy(), text].filter((part) => part !== undefined);
    const progress = {
      left: toEvict + ending.length,
      ...(blocks.length === 0 ? {} : { blockedBy: blocks.join('; ') }),
    };
    if (sameJson(progress, this.#told)) return;
    this.#told = progress;
    onChange?.(progress);
  }
}
