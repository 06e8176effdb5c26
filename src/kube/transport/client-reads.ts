/**
 * Implements the reading half of the KubeClient over HTTP. Each method is one call, but listing all pages may take
 * several calls.
 */
import type { Caller, KubeClient, ListOptions } from '../client.ts';
import { apiVersionOf, type KubeList, type KubeObject, type Resource } from '../resources.ts';
import { TransportError } from '../status-error.ts';
import { type CallOptions, callsOf, eventCheck, listCheck, objectCheck } from './client-calls.ts';

/** Objects per page, as in client-go. A larger page would block the event loop. */
const PAGE_SIZE = 500;
/** The most pages that may be empty, because a server may find no matching object in a page. */
const MOST_EMPTY_PAGES = 1_000;

const same = <T>(object: T): T => object;

/** Returns the methods that read. */
export function readsOver(
  caller: Caller,
  own: CallOptions,
): Pick<KubeClient, 'get' | 'list' | 'listAll' | 'watch' | 'raw'> {
  const { mostItems = 1_000_000, watchIdleMs = 180_000 } = own;
  const { callAt, callFor } = callsOf(own);
  const list = async <T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<KubeList<T>> => {
    const { labelSelector, fieldSelector, limit, resourceVersion, mostBytes } = options;
    const query = {
      labelSelector,
      fieldSelector,
      limit,
      resourceVersion,
      continue: options.continue,
    };
    const check = listCheck(resource.kind);
    const call = { ...callFor('list', resource, options), query, mostBytes, check };
    const found = await caller.json<KubeList<T>>(call);
    // Servers omit `apiVersion` and `kind` in the items of built-in lists, but not in watch events. This code gives
    // items and events the same form.
    const form = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    const items = (found.items ?? []).map((item) =>
      item.kind === undefined ? { ...form, ...item } : item,
    );
    return { ...found, items };
  };
  return {
    list,
    async listAll(resource, { transform = same, ...options } = {}) {
      let page = await list(resource, { limit: PAGE_SIZE, ...options });
      const items = page.items.map(transform);
      for (let pages = 1; page.metadata.continue; pages++) {
        // A correct server sends at most `mostItems` objects. It never sends more than MOST_EMPTY_PAGES pages in
        // addition to one page for each object.
        if (items.length > mostItems || pages > items.length + MOST_EMPTY_PAGES)
          throw new TransportError(
            `the list of ${resource.plural} does not end: ${items.length} in ${pages} pages`,
          );
        const rest = { ...options, continue: page.metadata.continue, resourceVersion: undefined };
        page = await list(resource, { limit: PAGE_SIZE, ...rest });
        items.push(...page.items.map(transform));
      }
      return { ...page, items };
    },
    get: async (resource, name, options = {}) =>
      await caller.json({
        ...callFor('get', resource, options, { name }),
        check: objectCheck(resource.kind),
      }),
    watch(resource, options = {}) {
      const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, sendInitialEvents } =
        options;
      const initial = sendInitialEvents
        ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' }
        : {};
      const selected = {
        labelSelector,
        fieldSelector,
        resourceVersion,
        timeoutSeconds,
        ...initial,
      };
      const query = { ...selected, watch: true, allowWatchBookmarks: true };
      const call = {
        ...callFor('watch', resource, options),
        query,
        check: eventCheck(resource.kind),
      };
      return caller.stream(call, watchIdleMs);
    },
    raw: async (path, options = {}) =>
      await caller.text(callAt('get', path.split('?')[0] ?? path, path, options)),
  };
}
