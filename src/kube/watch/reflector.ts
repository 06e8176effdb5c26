/**
 * Follows one collection like a reflector of client-go: it reads the complete list, then every
 * change, and retries after failures.
 */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { KubeClient, Selection } from '../client.ts';
import { type KubeObject, keyOf, type Resource } from '../resources.ts';
import * as status from '../status-error.ts';
import { retryPace } from './retry-pace.ts';
import type { Store } from './store.ts';

/** The annotation of the bookmark that ends a streamed list. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/**
 * The least and the most seconds after which the server ends a watch. The next watch may go to another replica, so the
 * load spreads over the replicas again.
 */
const WATCH_SECONDS = { least: 300, most: 600 };
/**
 * The shortest successful watch in milliseconds. A watch that ends sooner without an event counts
 * as failed, so that a broken proxy does not cause an endless fast loop.
 */
const SHORTEST_WATCH_MS = 1_000;

export interface ReflectorOptions<T extends KubeObject> extends Selection, Tools {
  /**
   * The way in which the first list is read. `streamed` needs one request. The server answers this request from its
   * cache when the server next learns the progress of its store, at most 0.1 s later.
   */
  readonly firstList: 'streamed' | 'paged';
  /**
   * Makes objects smaller as they arrive, because thousands of complete objects may not fit into
   * memory.
   */
  readonly transform: (object: T) => T;
}

/**
 * Follows the collection until `abort`, and never rejects. `sink` gets all objects and changes in the order in which
 * the server sends them.
 */
export async function reflect<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  options: ReflectorOptions<T>,
  sink: Store<T>,
  abort: AbortSignal,
): Promise<void> {
  const { namespace, labelSelector, fieldSelector, firstList, transform } = options;
  const { clock, random, log } = options;
  const selection = { namespace, labelSelector, fieldSelector, abort };
  const pace = retryPace(clock, random);
  let isPaged = firstList === 'paged';
  /** The version at which the next watch starts; undefined if the whole list must be read. */
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
  /**
   * Watches from `resourceVersion`. If it is undefined, the server first sends all objects, and then a bookmark that
   * marks the end of the list.
   */
  const watch = async (): Promise<void> => {
    let found = resourceVersion === undefined ? new Map<string, T>() : undefined;
    const query = {
      ...selection,
      resourceVersion,
      sendInitialEvents: found !== undefined,
      timeoutSeconds: watchSeconds(random),
    };
    for await (const event of client.watch(resource, query)) {
      // The server reports problems inside a stream as an event. The most frequent problem is an expired version.
      if (event.type === 'ERROR') throw new status.StatusError(event.object);
      const { type, object } = event;
      if (!found) {
        if (type !== 'BOOKMARK') sink.apply(type, transform(object));
        sink.advance(advance(object));
      } else if (type === 'DELETED') found.delete(keyOf(object));
      else if (type !== 'BOOKMARK') found.set(keyOf(object), transform(object));
      else if (isInitialEnd(object)) {
        sink.replace([...found.values()], advance(object));
        found = undefined;
      } else {
        // If the first bookmark has no annotation INITIAL_EVENTS_END, the server does not know the parameter
        // `sendInitialEvents`.
        isPaged = true;
        return;
      }
    }
  };
  const follow = async (): Promise<void> => {
    if (resourceVersion === undefined && isPaged) await list();
    const before = resourceVersion;
    const startedAt = clock.monotonic();
    await watch();
    const lasted = clock.monotonic() - startedAt;
    if (lasted < SHORTEST_WATCH_MS && before === resourceVersion)
      throw new Error(`the watch ended after ${lasted} ms`);
  };
  const recover = async (thrown: unknown): Promise<void> => {
    if (resourceVersion === undefined && mayLackStreaming(thrown)) isPaged = true;
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

function isInitialEnd({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
}

/** Returns a random number of seconds, so that watches do not all end at the same time. */
function watchSeconds(random: () => number): number {
  const { least, most } = WATCH_SECONDS;
  return Math.round(least + random() * (most - least));
}

/**
 * Returns true if the answer may mean that the server does not support streamed lists. Servers
 * without the feature answer Invalid. Older proxies and aggregated servers answer BadRequest.
 */
function mayLackStreaming(thrown: unknown): boolean {
  return status.isInvalid(thrown) || (thrown instanceof status.StatusError && thrown.code === 400);
}
