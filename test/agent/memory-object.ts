/** Owns an object that carries signals without an API server, with the optimistic locking of one. */
import type { SignalObject } from '../../src/agent/signal-object.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../src/signal/codec.ts';

/** What outlives an agent: the stored object, and every status it went through. */
export class MemoryStore {
  readonly statuses: string[] = [];
  object: KubeObject = { metadata: { name: 'worker1', resourceVersion: '1', annotations: { theirs: 'kept' } } };

  send(signal: SignalData): void {
    const annotations = { ...this.object.metadata.annotations, ...encodeSignal(signal) };
    this.put({ ...this.object, metadata: { ...this.object.metadata, annotations } });
  }

  /** Throws a conflict where `object` is not based on the stored one. */
  put(object: KubeObject): KubeObject {
    const { resourceVersion } = this.object.metadata;
    if (object.metadata.resourceVersion !== resourceVersion) {
      throw new StatusError({ kind: 'Status', code: 409, reason: 'Conflict' });
    }
    const next = String(Number(resourceVersion) + 1);
    this.object = { ...object, metadata: { ...object.metadata, resourceVersion: next } };
    const status = decodeSignal(object.metadata.annotations)?.status?.status;
    if (status !== undefined && status !== this.statuses.at(-1)) this.statuses.push(status);
    return this.object;
  }
}

/** One agent's view of the store: it sees what is there when it starts, and its own writes. */
export function viewOf(store: MemoryStore): SignalObject {
  const listeners = new Set<() => void>();
  let newest = store.object;
  let version = 0;
  const set = (object: KubeObject): void => {
    newest = object;
    version++;
    for (const listener of listeners) listener();
  };
  return {
    get newest() {
      return newest;
    },
    isKnown: true,
    get version() {
      return version;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    follow: () => Promise.resolve(),
    async write(object) {
      await Promise.resolve();
      set(store.put(object));
    },
    async refresh() {
      await Promise.resolve();
      set(store.object);
    },
  };
}
