/** Follows one collection, as in client-go: first the complete list, then every change, with retries after failures. */
import { backoffDelay, type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { KubeClient, Selection } from '../client.ts';
import { type KubeObject, keyOf, type Resource } from '../resources.ts';
import * as status from '../status-error.ts';
import type { Store } from './store.ts';

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
/** Milliseconds without even a bookmark, which comes each minute: a server restored from a backup sends nothing before it reaches our version. */
const SILENT_MS = 150_000;
/** Milliseconds: a watch that ends sooner without an event counts as failed, or a bad proxy would make us spin. */
const SHORTEST_WATCH_MS = 1_000;

export interface ReflectorOptions<T extends KubeObject> extends Selection, Tools {
  /** `streamed` is one request, from the server's cache; it is held back until the next mark of progress, up to 0.1 s. */
  readonly firstList: 'streamed' | 'paged';
  /** Makes objects smaller as they arrive: thousands of complete ones may not fit into memory. */
  readonly transform: (object: T) => T;
}

/** Follows until `abort`, and never rejects. `sink` gets what is found, in the server's order. */
export async function reflect<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  {
    namespace,
    labelSelector,
    fieldSelector,
    firstList,
    transform,
    clock,
    random,
    log,
  }: ReflectorOptions<T>,
  sink: Store<T>,
  abort: AbortSignal,
): Promise<void> {
  const selection = { namespace, labelSelector, fieldSelector, abort };
  const pace = retryPace(clock, random);
  let isPaged = firstList === 'paged';
  /** Where the next watch starts; undefined when the whole list must be read. */
  let resourceVersion: string | undefined;
  const advance = ({ metadata }: { metadata: { resourceVersion?: string } }): string => {
    resourceVersion = metadata.resourceVersion ?? '';
    pace.succeeded();
    return resourceVersion;
  };
  const list = async (): Promise<void> => {
    const found = await client.listAll(resource, { ...selection, transform });
    sink.replace(found.items, advance(found));
  };
  /** Without a version also lists: the server sends the objects, a marked bookmark, and then the changes. */
  const watch = async (): Promise<void> => {
    let found = resourceVersion === undefined ? new Map<string, T>() : undefined;
    const timeoutSeconds = Math.round(
      WATCH_SECONDS.least + random() * (WATCH_SECONDS.most - WATCH_SECONDS.least),
    );
    const options = {
      ...selection,
      resourceVersion,
      sendInitialEvents: found !== undefined,
      timeoutSeconds,
    };
    for await (const event of client.watch(resource, options)) {
      // The server reports problems inside a stream as an event, above all an expired version.
      if (event.type === 'ERROR') throw new status.StatusError(event.object);
      const { type, object } = event;
      if (!found) {
        if (type !== 'BOOKMARK') sink.apply(type, transform(object));
        sink.advance(advance(object));
      } else if (type === 'DELETED') found.delete(keyOf(object));
      else if (type !== 'BOOKMARK') found.set(keyOf(object), transform(object));
      else if (object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true') {
        sink.replace([...found.values()], advance(object));
        found = undefined;
      } else {
        // Only a server that does not know the parameter sends an ordinary bookmark first.
        isPaged = true;
        return;
      }
    }
  };
  const follow = async (): Promise<void> => {
    if (resourceVersion === undefined && isPaged) await list();
    const [before, startedAt] = [resourceVersion, clock.monotonic()];
    await watch();
    const lasted = clock.monotonic() - startedAt;
    if (lasted < SHORTEST_WATCH_MS && before === resourceVersion)
      throw new Error(`the watch ended after ${lasted} ms`);
  };
  const recover = async (thrown: unknown): Promise<void> => {
    // Servers without the feature answer Invalid; older proxies and aggregated servers BadRequest.
    const isRefused =
      status.isInvalid(thrown) || (thrown instanceof status.StatusError && thrown.code === 400);
    if (resourceVersion === undefined && isRefused) isPaged = true;
    if (status.isGone(thrown) || pace.isSuspect(thrown)) resourceVersion = undefined;
    const { pauseMs, isRoutine } = pace.failed(thrown);
    const fields = { problem: messageOf(thrown), retryInMs: Math.round(pauseMs) };
    if (isRoutine) log.debug('watch interrupted', fields);
    else log.warn('watch failed', fields);
    await sleep(clock, pauseMs, abort).catch(() => undefined);
  };
  while (!abort.aborted)
    await follow().catch(async (error: unknown) =>
      abort.aborted ? undefined : await recover(error),
    );
}

/** Counts failures in a row: the more of them, the longer the pause. */
function retryPace(clock: Clock, random: () => number) {
  let [failures, heardAt] = [0, clock.monotonic()];
  /** When the server last gave no answer, or one that says that it cannot. */
  let awayAt = Number.NEGATIVE_INFINITY;
  let wasAway = false;
  return {
    succeeded: () => void ([failures, heardAt] = [0, clock.monotonic()]),
    /** A server that keeps answering with failures may object to the version; one that was away may have gone back in time. */
    isSuspect: (thrown: unknown) =>
      clock.monotonic() - heardAt >= SILENT_MS ||
      (failures + 1 >= FAILURES_BEFORE_RELIST && !(thrown instanceof status.TransportError)),
    /** Begins with short pauses when a server answers again. */
    failed(thrown: unknown) {
      const now = clock.monotonic();
      const isAway = !(thrown instanceof status.StatusError) || thrown.code >= 500;
      if (isAway) awayAt = now;
      else if (wasAway) failures = 0;
      wasAway = isAway;
      const isDenied =
        status.isForbidden(thrown) || status.isUnauthorized(thrown) || status.isNotFound(thrown);
      const cap = isDenied && now - awayAt >= STARTING_MS ? RETRY.denialCap : RETRY.cap;
      const asked = thrown instanceof status.StatusError ? (thrown.retryAfterMs ?? 0) : 0;
      const pauseMs = Math.max(asked, backoffDelay(failures++, { base: RETRY.base, cap, random }));
      // Broken streams are routine; only repeated failures are worth a warning.
      return { pauseMs, isRoutine: failures <= 2 && !isDenied };
    },
  };
}
