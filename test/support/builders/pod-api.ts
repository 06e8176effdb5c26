/**
 * A stand-in for the API server with the pods of a cluster, for tests of drains. The test answers the evictions and
 * ends the pods.
 */
import type {
  EvictOptions,
  KubeClient,
  ListAllOptions,
  RequestOptions,
  WatchEvent,
  WatchOptions,
} from '../../../src/kube/client.ts';
import {
  type KubeList,
  type KubeObject,
  keyOf,
  type PersistentVolume,
  type Pod,
  type PodDisruptionBudget,
  type Resource,
  type Status,
  type VolumeAttachment,
} from '../../../src/kube/resources.ts';
import { StatusError } from '../../../src/kube/status-error.ts';

/** One eviction as the drain requested it. */
export interface Asked {
  /** `namespace/name`. */
  readonly pod: string;
  readonly uid: string | undefined;
  readonly gracePeriodSeconds: number | undefined;
}

type Change = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Pod };
type Sink = (event: WatchEvent<KubeObject> | Error) => void;

export class PodApi {
  readonly #pods = new Map<string, Pod>();
  readonly #watches = new Set<{ readonly selector: string; readonly sink: Sink }>();
  readonly #history: Change[] = [];
  #version = 0;
  /** The evictions in the order in which they were requested. */
  readonly evictions: Asked[] = [];
  /** The names of the DaemonSets that exist. A request for any other DaemonSet gets 404. */
  readonly daemonSets = new Set<string>();
  /** Labels of the namespaces that can be read, by name. */
  readonly namespaces = new Map<string, Record<string, string>>();
  budgets: PodDisruptionBudget[] = [];
  /**
   * The volumes that are attached to a node, with their claims as `namespace/name`. If it is an error, the list of
   * volumes fails with this error.
   */
  attached: { readonly node: string; readonly claim: string }[] | Error = [];
  /** All requests except evictions. */
  readonly reads: string[] = [];
  /**
   * Answers an eviction. By default it marks the pod as being deleted. If it throws, the eviction is refused with this
   * error.
   */
  onEvict: (asked: Asked) => void = ({ pod }) => this.end(pod);

  /** How many watches are open. */
  get watching(): number {
    return this.#watches.size;
  }

  /** All pods of a node, as they are now. */
  on(node: string): Pod[] {
    return this.#selected(`spec.nodeName=${node}`);
  }

  /** Ends every open watch with `error`. */
  breakWatches(error: Error): void {
    for (const { sink } of this.#watches) sink(error);
  }

  put(pod: Pod): void {
    const type = this.#pods.has(keyOf(pod)) ? 'MODIFIED' : 'ADDED';
    const stored = {
      ...pod,
      metadata: { ...pod.metadata, resourceVersion: String(++this.#version) },
    };
    this.#pods.set(keyOf(pod), stored);
    this.#tell(type, stored);
  }

  /** Marks a pod as being deleted now. A finalizer in `metadata` keeps the pod. */
  end(key: string, metadata: Partial<Pod['metadata']> = {}): void {
    const pod = this.#read(key);
    this.put({
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', ...metadata },
    });
  }

  remove(key: string): void {
    const pod = this.#read(key);
    this.#pods.delete(key);
    this.#tell('DELETED', {
      ...pod,
      metadata: { ...pod.metadata, resourceVersion: String(++this.#version) },
    });
  }

  get client(): KubeClient {
    const used = {
      evict: async (
        pod: { name: string; namespace: string; uid?: string },
        options: EvictOptions = {},
      ) => {
        await Promise.resolve();
        const { name, namespace, uid } = pod;
        const asked = {
          pod: `${namespace}/${name}`,
          uid,
          gracePeriodSeconds: options.gracePeriodSeconds,
        };
        this.evictions.push(asked);
        this.onEvict(asked);
      },
      get: async (resource: Resource, name: string, { namespace }: RequestOptions = {}) => {
        await Promise.resolve();
        this.reads.push(`get ${resource.plural} ${namespace}/${name}`);
        if (resource.plural === 'persistentvolumes') return this.#volume(name);
        const labels = this.namespaces.get(name);
        if (resource.plural === 'namespaces' && labels) return { metadata: { name, labels } };
        if (!this.daemonSets.has(name))
          throw refuse({ code: 404, reason: 'NotFound', details: { name } });
        return { metadata: { name, namespace } };
      },
      listAll: async (
        resource: Resource,
        options: ListAllOptions<KubeObject> = {},
      ): Promise<KubeList<KubeObject>> => {
        const { fieldSelector = '', transform = (each) => each } = options;
        await Promise.resolve();
        this.reads.push(`list ${resource.plural} ${fieldSelector}`.trimEnd());
        const items = this.#listed(resource, fieldSelector);
        return {
          metadata: { resourceVersion: String(this.#version) },
          items: items.map(transform),
        };
      },
      watch: (_resource: unknown, options: WatchOptions) => this.#watch(options),
    };
    return used as unknown as KubeClient;
  }

  #listed({ plural }: Resource, fieldSelector: string): readonly KubeObject[] {
    if (plural === 'pods') return this.#selected(fieldSelector);
    if (plural !== 'volumeattachments') return this.budgets;
    if (this.attached instanceof Error) throw this.attached;
    return this.attached.map(({ node, claim }): VolumeAttachment => {
      const source = { persistentVolumeName: claim.replace('/', '-') };
      return {
        metadata: { name: `csi-${claim}` },
        spec: { nodeName: node, attacher: 'a', source },
      };
    });
  }

  #volume(volume: string): PersistentVolume {
    const [namespace, ...name] = volume.split('-');
    return {
      metadata: { name: volume },
      spec: { claimRef: { namespace: namespace ?? '', name: name.join('-') } },
    };
  }

  #read(key: string): Pod {
    const pod = this.#pods.get(key);
    if (!pod) throw refuse({ code: 404, reason: 'NotFound' });
    return pod;
  }

  #selected(selector: string): Pod[] {
    return [...this.#pods.values()].filter(
      (pod) => selector === `spec.nodeName=${pod.spec?.nodeName}`,
    );
  }

  #tell(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod): void {
    const event = { type, object: structuredClone(pod) };
    this.#history.push(event);
    for (const { selector, sink } of this.#watches) if (concerns(selector, event)) sink(event);
  }

  /** Returns the first events of a watch: all objects and the final bookmark, or the changes since a resourceVersion. */
  #backlog({
    fieldSelector = '',
    sendInitialEvents,
    resourceVersion = '0',
  }: WatchOptions): WatchEvent<KubeObject>[] {
    if (!sendInitialEvents) {
      const isNew = ({ object }: Change): boolean =>
        Number(object.metadata.resourceVersion) > Number(resourceVersion);
      return this.#history.filter((event) => isNew(event) && concerns(fieldSelector, event));
    }
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const bookmark = {
      metadata: { name: '', resourceVersion: String(this.#version), annotations },
    };
    const present = this.#selected(fieldSelector).map(
      (object) => ({ type: 'ADDED', object }) as const,
    );
    return [...present, { type: 'BOOKMARK', object: bookmark }];
  }

  async *#watch(options: WatchOptions): AsyncGenerator<WatchEvent<KubeObject>> {
    const { fieldSelector: selector = '', abort } = options;
    const events: (WatchEvent<KubeObject> | Error)[] = this.#backlog(options);
    let wake = (): void => undefined;
    const sink = (event: WatchEvent<KubeObject> | Error): void => {
      events.push(event);
      wake();
    };
    const watch = { selector, sink };
    const onAbort = (): void => wake();
    abort?.addEventListener('abort', onAbort, { once: true });
    this.#watches.add(watch);
    try {
      for (;;) {
        abort?.throwIfAborted();
        const event = events.shift();
        if (event instanceof Error) throw event;
        if (event) yield event;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      this.#watches.delete(watch);
    }
  }
}

function concerns(selector: string, { object }: Change): boolean {
  return selector === `spec.nodeName=${object.spec?.nodeName}`;
}

export function refuse(status: Omit<Status, 'kind'>): StatusError {
  return new StatusError({
    kind: 'Status',
    status: 'Failure',
    message: `${status.reason} by the test`,
    ...status,
  });
}

/** The answer of an API server 1.36 if a budget allows no disruption. */
export function refuseByBudget(
  name: string,
  matter = 'needs 2 healthy pods and has 2 currently',
): StatusError {
  return refuse({
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: 'DisruptionBudget', message: `The disruption budget ${name} ${matter}` }],
    },
  });
}
