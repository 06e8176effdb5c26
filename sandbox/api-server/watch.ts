/**
 * Serves watches: the first events of a watch, the type of the event for each change, bookmarks, and the end of the
 * watch.
 */
import type { Cluster, Resource } from './cluster.ts';
import { ApiFailure, expired } from './failure.ts';
import { groupVersion, type Kind } from './kinds/kind.ts';
import {
  parseRevision,
  revisionFault,
  type Selection,
  selectionOf,
  tooLargeRevision,
  validateListOptions,
} from './list.ts';
import { type ApiRequest, flag, integer, type Target } from './request.ts';
import type { Sink } from './sink.ts';
import type { Change, Version } from './store.ts';
import { type TableOptions, tableOf } from './table/table.ts';

/**
 * The maximum number of bytes that may wait for a client. If it is exceeded, the server closes the connection, as a
 * real server does.
 */
const BACKLOG_LIMIT = 64 * 1024 * 1024;

/** The duration of a watch if the client names no timeout, in seconds: the minimum of kube-apiserver. */
const DEFAULT_TIMEOUT = 1800;

/** Milliseconds before the end of a watch at which its last bookmark is sent. */
const BOOKMARK_LEAD = 2000;

type Start = { readonly from: 'state' } | { readonly from: 'revision'; readonly revision: number };

/** The request for a watch, as the router has read it. */
interface Asked {
  readonly watch: Resource;
  readonly target: Target;
  readonly table: TableOptions | undefined;
}

/** Answers with a stream of events until the client, the timeout or the server ends it. */
export class WatchHub {
  readonly #cluster: Cluster;
  readonly #bookmarkInterval: number;
  readonly #open = new Map<Resource['collection'], Set<Watcher>>();

  /** `bookmarkInterval`: milliseconds between bookmarks on one watch. */
  constructor(cluster: Cluster, bookmarkInterval: number) {
    this.#cluster = cluster;
    this.#bookmarkInterval = bookmarkInterval;
  }

  serve({ watch: resource, target, table }: Asked, { query }: ApiRequest, response: Sink): void {
    validateListOptions(query);
    const selection = selectionOf(resource, query, target);
    const version = query.get('resourceVersion') ?? '';
    if (/\D/.test(version)) throw new ApiFailure(500, '', revisionFault(version));
    const start = startOf(query, this.#cluster.revisions.current);
    const seconds = integer(query, 'timeoutSeconds');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const watcher = new Watcher(resource.kind, selection, response, table);
    const refusal = this.#refusal(resource, query, start);
    if (refusal) {
      watcher.send(`{"type":"ERROR","object":${JSON.stringify(refusal.status)}}\n`);
      response.end();
      return;
    }
    this.#begin(watcher, resource, start, flag(query, 'allowWatchBookmarks'));
    this.#run(
      watcher,
      resource,
      (seconds > 0 ? seconds : DEFAULT_TIMEOUT) * 1000,
      flag(query, 'allowWatchBookmarks'),
    );
  }

  /** Ends every watch of a collection that is no longer served. */
  close({ collection }: Resource): void {
    for (const watcher of this.#open.get(collection) ?? []) watcher.response.end();
  }

  #refusal({ collection }: Resource, query: URLSearchParams, start: Start): ApiFailure | undefined {
    const { current } = this.#cluster.revisions;
    if (start.from === 'state') {
      const wanted = parseRevision(query.get('resourceVersion')) ?? 0;
      return wanted > current ? tooLargeRevision(wanted, current) : undefined;
    }
    if (collection.remembers(start.revision)) return undefined;
    return expired(`too old resource version: ${start.revision} (${current})`);
  }

  #begin(watcher: Watcher, { collection }: Resource, start: Start, bookmarks: boolean): void {
    const { current } = this.#cluster.revisions;
    if (start.from === 'revision') {
      for (const change of collection.since(start.revision)) watcher.see(change);
      return;
    }
    const { only } = watcher.selection;
    if (only === undefined) {
      for (const version of collection.at(current)) watcher.add(version);
    } else {
      const version = collection.get(only);
      if (version) watcher.add(version);
    }
    if (bookmarks) watcher.bookmark(current, { 'k8s.io/initial-events-end': 'true' });
  }

  #run(watcher: Watcher, { collection }: Resource, timeout: number, bookmarks: boolean): void {
    const { clock, revisions } = this.#cluster;
    const listener = (change: Change): void => watcher.see(change);
    const cancels = [clock.schedule(timeout, () => watcher.response.end())];
    const bookmark = (): void => watcher.bookmark(revisions.current);
    if (bookmarks) {
      const repeat = (): void => {
        bookmark();
        cancels[1] = clock.schedule(this.#bookmarkInterval, repeat);
      };
      cancels[1] = clock.schedule(this.#bookmarkInterval, repeat);
      if (timeout > BOOKMARK_LEAD) cancels[2] = clock.schedule(timeout - BOOKMARK_LEAD, bookmark);
    }
    const unlisten = collection.listen(listener, watcher.selection.only);
    const open = this.#open.get(collection) ?? new Set();
    this.#open.set(collection, open.add(watcher));
    watcher.response.once('close', () => {
      unlisten();
      open.delete(watcher);
      for (const cancel of cancels) cancel();
    });
  }
}

/**
 * Returns the start of a watch. `sendInitialEvents=true` asks for the present state first. A missing resourceVersion,
 * or "0", does the same, unless `sendInitialEvents` is false: then the watch starts with the next change.
 */
function startOf(query: URLSearchParams, current: number): Start {
  const wanted = parseRevision(query.get('resourceVersion')) ?? 0;
  if (flag(query, 'sendInitialEvents')) return { from: 'state' };
  if (wanted > 0) return { from: 'revision', revision: wanted };
  if (query.has('sendInitialEvents')) return { from: 'revision', revision: current };
  return { from: 'state' };
}

/** The texts of the events of one change, shared by all watchers. */
const eventTexts = new WeakMap<Version, Map<string, Buffer>>();

function eventText(type: string, version: Version): Buffer {
  const texts = eventTexts.get(version) ?? new Map<string, Buffer>();
  eventTexts.set(version, texts);
  const known = texts.get(type);
  if (known) return known;
  const text = Buffer.from(`{"type":"${type}","object":${version.text}}\n`);
  texts.set(type, text);
  return text;
}

class Watcher {
  readonly response: Sink;
  readonly #kind: Kind;
  readonly selection: Selection;
  readonly #table: TableOptions | undefined;
  #hasSentColumns = false;
  #allowance = BACKLOG_LIMIT;

  constructor(kind: Kind, selection: Selection, response: Sink, table: TableOptions | undefined) {
    this.#table = table;
    this.#kind = kind;
    this.selection = selection;
    this.response = response;
  }

  /**
   * Sends the event of a change to this watch: ADDED if the object enters the selection, DELETED if it leaves the
   * selection.
   */
  see({ type, version, before }: Change): void {
    const { matches } = this.selection;
    const was = before !== undefined && matches(before.object);
    const is = type !== 'DELETED' && matches(version.object);
    if (is) this.send(this.#event(was ? 'MODIFIED' : 'ADDED', version));
    else if (was)
      this.send(
        this.#event('DELETED', type === 'DELETED' ? version : before.under(version.revision)),
      );
  }

  add(version: Version): void {
    if (!this.selection.matches(version.object)) return;
    const text = this.#event('ADDED', version);
    // The first state may be larger than the limit for later events.
    this.#allowance += text.length;
    this.send(text);
  }

  bookmark(revision: number, annotations?: Record<string, string>): void {
    const object = {
      kind: this.#kind.kind,
      apiVersion: groupVersion(this.#kind),
      metadata: { resourceVersion: String(revision), ...(annotations && { annotations }) },
      ...this.#kind.blank,
    };
    const sent = this.#table ? this.#tableOf(object, this.#table) : object;
    this.send(`${JSON.stringify({ type: 'BOOKMARK', object: sent })}\n`);
  }

  #event(type: string, version: Version): string | Buffer {
    if (!this.#table) return eventText(type, version);
    return `${JSON.stringify({ type, object: this.#tableOf(version.object, this.#table) })}\n`;
  }

  /** Only the first table of a watch defines the columns. */
  #tableOf(object: Record<string, unknown>, options: TableOptions): Record<string, unknown> {
    const table = tableOf(this.#kind, object, options);
    if (this.#hasSentColumns) table['columnDefinitions'] = null;
    this.#hasSentColumns = true;
    return table;
  }

  send(line: string | Buffer): void {
    if (this.response.writableEnded) return;
    this.response.write(line);
    if (this.response.writableLength > this.#allowance) this.response.destroy();
  }
}
