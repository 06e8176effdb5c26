/** Follows one collection, as in client-go: first the complete list, then every change, with retries after failures. */
import { backoffDelay, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { KubeClient, Selection, WatchEvent } from '../client.ts';
import { type KubeObject, keyOf, type Resource } from '../resources.ts';
import {
  isForbidden,
  isGone,
  isInvalid,
  isNotFound,
  isUnauthorized,
  StatusError,
  TransportError,
} from '../status-error.ts';
import type { Store } from './store.ts';

export interface ReflectorParts<T extends KubeObject> extends Tools {
  readonly client: KubeClient;
  readonly resource: Resource<T>;
  readonly selection: Selection;
  /** How the first list comes. A server holds a streamed one back until its next mark of progress, up to 0.1 s. */
  readonly firstList: 'streamed' | 'paged';
  /** Receives what the reflector finds, in the server's order. */
  readonly sink: Store<T>;
  /** Makes objects smaller as they arrive: thousands of complete ones may not fit into memory. */
  readonly transform: (object: T) => T;
}

/** Annotation of the bookmark that ends a streamed list. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/** Seconds after which the server ends a watch, so that load spreads over its replicas again. */
const WATCH_SECONDS = { least: 300, most: 600 };
/** Milliseconds. A server that is away may be back at any moment; a denial repeats. */
const RETRY = { base: 200, cap: 2_000, denialCap: 30_000 };
/** Milliseconds since a failure without a verdict: a server that has just started denies what its roles allow. */
const STARTING_MS = 15_000;
/** After this many failures in a row the remembered version may be the cause, and the list is read again. */
const FAILURES_BEFORE_RELIST = 5;
/** Milliseconds: a watch that ends sooner without an event counts as failed, or a bad proxy would make us spin. */
const SHORTEST_WATCH_MS = 1_000;

export class Reflector<T extends KubeObject> {
  readonly #parts: ReflectorParts<T>;
  /** Where the next watch starts; undefined when the whole list must be read. */
  #resourceVersion: string | undefined;
  #failures = 0;
  /** When the server last gave no answer, or one that says that it cannot. */
  #awayAt = Number.NEGATIVE_INFINITY;
  #wasAway = false;
  #isPaged: boolean;

  constructor(parts: ReflectorParts<T>) {
    this.#parts = parts;
    this.#isPaged = parts.firstList === 'paged';
  }

  /** Follows until `abort`; never rejects. */
  async run(abort: AbortSignal): Promise<void> {
    while (!abort.aborted) {
      try {
        await this.#follow(abort);
      } catch (error) {
        if (!abort.aborted) await this.#recover(error, abort);
      }
    }
  }

  async #follow(abort: AbortSignal): Promise<void> {
    if (this.#resourceVersion === undefined && this.#isPaged) await this.#list(abort);
    const startedAt = this.#parts.clock.monotonic();
    const before = this.#resourceVersion;
    await this.#watch(abort);
    const lasted = this.#parts.clock.monotonic() - startedAt;
    if (lasted < SHORTEST_WATCH_MS && before === this.#resourceVersion)
      throw new Error(`the watch ended after ${lasted} ms`);
  }

  async #list(abort: AbortSignal): Promise<void> {
    const { client, resource, selection, sink, transform } = this.#parts;
    const list = await client.listAll(resource, { ...selection, abort });
    sink.replace(
      list.items.map((item) => transform(item)),
      this.#advance(list),
    );
  }

  /** Without a version also lists: the server sends the objects, a marked bookmark, and then the changes. */
  async #watch(abort: AbortSignal): Promise<void> {
    const { client, resource, selection, random } = this.#parts;
    const resourceVersion = this.#resourceVersion;
    let found = resourceVersion === undefined ? new Map<string, T>() : undefined;
    const timeoutSeconds = Math.round(WATCH_SECONDS.least + random() * (WATCH_SECONDS.most - WATCH_SECONDS.least));
    const options = { ...selection, resourceVersion, sendInitialEvents: found !== undefined, timeoutSeconds, abort };
    for await (const event of client.watch(resource, options)) {
      // The server reports problems inside a stream as an event, above all an expired version.
      if (event.type === 'ERROR') throw new StatusError(event.object);
      const { type, object } = event;
      if (!found) this.#take(type, object);
      else if (type === 'DELETED') found.delete(keyOf(object));
      else if (type !== 'BOOKMARK') found.set(keyOf(object), this.#parts.transform(object));
      else if (object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true') {
        this.#parts.sink.replace([...found.values()], this.#advance(object));
        found = undefined;
      } else {
        // Only a server that does not know the parameter sends an ordinary bookmark first.
        this.#isPaged = true;
        return;
      }
    }
  }

  #take(type: Change<T>['type'], object: T): void {
    if (type !== 'BOOKMARK') this.#parts.sink.apply(type, this.#parts.transform(object));
    this.#parts.sink.advance(this.#advance(object));
  }

  #advance({ metadata }: { metadata: { resourceVersion?: string } }): string {
    this.#resourceVersion = metadata.resourceVersion ?? '';
    this.#failures = 0;
    return this.#resourceVersion;
  }

  async #recover(thrown: unknown, abort: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#parts;
    // Servers without the feature answer Invalid; older proxies and aggregated servers BadRequest.
    const isRefused = isInvalid(thrown) || (thrown instanceof StatusError && thrown.code === 400);
    if (this.#resourceVersion === undefined && isRefused) this.#isPaged = true;
    if (isGone(thrown) || this.#isSuspect(thrown)) this.#resourceVersion = undefined;
    const asked = thrown instanceof StatusError ? (thrown.retryAfterMs ?? 0) : 0;
    const isStarting = this.#isStarting(thrown);
    const cap = isDenial(thrown) && !isStarting ? RETRY.denialCap : RETRY.cap;
    const delay = Math.max(asked, backoffDelay(this.#failures++, { base: RETRY.base, cap, random }));
    const fields = { problem: messageOf(thrown), retryInMs: Math.round(delay) };
    // Broken streams are routine; only repeated failures are worth a warning.
    if (this.#failures > 2 || isDenial(thrown)) log.warn('watch failed', fields);
    else log.debug('watch interrupted', fields);
    await sleep(clock, delay, abort).catch(() => undefined);
  }

  /** Also notes what `thrown` says, and begins with short pauses when a server answers again. */
  #isStarting(thrown: unknown): boolean {
    const now = this.#parts.clock.monotonic();
    const isAway = !(thrown instanceof StatusError) || thrown.code >= 500;
    if (isAway) this.#awayAt = now;
    else if (this.#wasAway) this.#failures = 0;
    this.#wasAway = isAway;
    return now - this.#awayAt < STARTING_MS;
  }

  /** A server that keeps answering with failures may object to the version; one that does not answer says nothing about it. */
  #isSuspect(thrown: unknown): boolean {
    return this.#failures + 1 >= FAILURES_BEFORE_RELIST && !(thrown instanceof TransportError);
  }
}

type Change<T extends KubeObject> = Exclude<WatchEvent<T>, { type: 'ERROR' }>;

function isDenial(error: unknown): boolean {
  return isForbidden(error) || isUnauthorized(error) || isNotFound(error);
}
