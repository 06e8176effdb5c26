/** An object that has signals and needs no API server. It has the same optimistic locking as an API server. */
import type { SignalObject } from '../../src/agent/object/signal-object.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../src/signal/annotations.ts';

/** The parts that remain when an agent ends: the stored object, and every status that it had. */
export class MemoryStore {
  readonly statuses: string[] = [];
  object: KubeObject = {
    metadata: { name: 'worker1', resourceVersion: '1', annotations: { theirs: 'kept' } },
  };
  /** Called before each write of the agent. If it changes the object, the write fails with a conflict. */
  beforeWrite: () => void = () => undefined;
  readonly #watchers = new Set<() => void>();

  send(signal: SignalData, more: Record<string, string> = {}): void {
    this.change({ annotations: { ...encodeSignal(signal), ...more } });
  }

  /** Sets the status of the signal, as a leader does. */
  advance(status: string, more: Record<string, string> = {}): void {
    const signal = decodeSignal(this.object.metadata.annotations);
    if (signal === undefined) throw new Error('there is no signal');
    this.send({ ...signal, status: { status, timestamp: '2026-01-01T00:00:00Z' } }, more);
  }

  change({
    annotations,
    ...more
  }: {
    annotations?: Record<string, string>;
    status?: object;
  }): void {
    const { metadata } = this.object;
    this.put({
      ...this.object,
      ...more,
      metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
    });
  }

  /** Throws a conflict if `object` is not based on the stored object. */
  put(object: KubeObject): void {
    const { resourceVersion } = this.object.metadata;
    if (object.metadata.resourceVersion !== resourceVersion) {
      throw new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' });
    }
    const next = String(Number(resourceVersion) + 1);
    this.object = { ...object, metadata: { ...object.metadata, resourceVersion: next } };
    const status = decodeSignal(object.metadata.annotations)?.status?.status;
    if (status !== undefined && status !== this.statuses.at(-1)) this.statuses.push(status);
    for (const watcher of this.#watchers) watcher();
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

/** One agent's view of the store, without any lag. */
export function viewOf(store: MemoryStore): SignalObject {
  return {
    get newest() {
      return store.object;
    },
    isKnown: true,
    get version() {
      return Number(store.object.metadata.resourceVersion);
    },
    onChange: (listener) => store.watch(listener),
    follow: async () => await Promise.resolve(),
    async write(object) {
      await Promise.resolve();
      store.beforeWrite();
      store.put(object);
    },
    refresh: async () => await Promise.resolve(),
  };
}
