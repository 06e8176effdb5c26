/** A minimal API server for tests of reconcilers. It has objects with resourceVersions, and views that lag behind. */

import { strategicPatch } from '../../../sandbox/api-server/writes/strategic-patch.ts';
import type {
  DeleteOptions,
  KubeClient,
  PatchOptions,
  WriteOptions,
} from '../../../src/kube/client.ts';
import {
  compareResourceVersions,
  type KubeObject,
  pathOf,
  type Resource,
} from '../../../src/kube/resources.ts';
import { StatusError } from '../../../src/kube/status-error.ts';
import { applyMergePatch, isRecord, type Json, sameJson } from '../../../src/util/json.ts';

export interface LaggingView<T extends KubeObject> {
  get(name: string): T | undefined;
  list(): T[];
  resourceVersion(): string | undefined;
  /**
   * Makes the view show the current objects. Until the next call the view keeps showing these objects. Before the first
   * call it shows nothing.
   */
  catchUp(): void;
}

export class MemoryApi {
  readonly #objects = new Map<string, KubeObject>();
  #hooks: readonly ((call: string) => void)[] = [];
  readonly #rawStatus = new Map<string, number>();
  #version = 0;
  /** Every call in order, such as `replace plans/autopilot/status`. */
  readonly calls: string[] = [];

  /** The version of the API server. */
  version = 'v1.36.3';
  /** Creates or replaces an object, as another client would. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): T {
    const stored = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(++this.#version) },
    };
    this.#objects.set(pathOf(resource, { name: object.metadata.name }), stored);
    return stored;
  }

  change<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    change: (object: T) => T,
  ): void {
    this.put(resource, change(this.read(resource, name)));
  }

  remove(resource: Resource, name: string): void {
    this.#objects.delete(pathOf(resource, { name }));
    this.#version++;
  }

  has(resource: Resource, name: string): boolean {
    return this.#objects.has(pathOf(resource, { name }));
  }

  /** Returns the object. Throws a 404 error if it does not exist. */
  read<T extends KubeObject>(resource: Resource<T>, name: string): T {
    const object = this.#objects.get(pathOf(resource, { name }));
    if (!object) throw refusal(404, 'NotFound');
    return copyOf(object) as T;
  }

  /** Answers with this status code when a client asks for this path, such as `/apis/example.com`. */
  answerRaw(path: string, status: number): void {
    this.#rawStatus.set(path, status);
  }

  /**
   * Calls `hook` once, before the next call that begins with `prefix`. If the hook throws, the error is the answer to
   * the call.
   */
  before(prefix: string, hook: () => void): void {
    const once = (call: string): void => {
      if (!call.startsWith(prefix)) return;
      this.#hooks = this.#hooks.filter((other) => other !== once);
      hook();
    };
    this.#hooks = [...this.#hooks, once];
  }

  view<T extends KubeObject>(resource: Resource<T>): LaggingView<T> {
    let seen = new Map<string, T>();
    let version: string | undefined;
    return {
      get: (name) => seen.get(name),
      list: () => [...seen.values()],
      resourceVersion: () => version,
      catchUp: () => {
        seen = new Map(this.#all(resource).map((object) => [object.metadata.name, object]));
        version = String(this.#version);
      },
    };
  }

  get client(): KubeClient {
    const used = {
      raw: async (path: string) =>
        await this.#answer(`get ${path}`, () => ({
          status: this.#rawStatus.get(path) ?? 200,
          body: JSON.stringify({ gitVersion: this.version }),
        })),
      get: async <T extends KubeObject>(resource: Resource<T>, name: string) =>
        await this.#answer(`get ${resource.plural}/${name}`, () => this.read(resource, name)),
      listAll: async <T extends KubeObject>(resource: Resource<T>) =>
        await this.#answer(`list ${resource.plural}`, () => ({ items: this.#all(resource) })),
      replace: async <T extends KubeObject>(
        resource: Resource<T>,
        object: T,
        { subresource }: WriteOptions = {},
      ) =>
        await this.#answer(
          `replace ${[resource.plural, object.metadata.name, subresource].filter(Boolean).join('/')}`,
          () => this.#replace(resource, object, subresource),
        ),
      create: async <T extends KubeObject>(resource: Resource<T>, object: T) =>
        await this.#answer(`create ${resource.plural}/${object.metadata.name}`, () =>
          this.#create(resource, object),
        ),
      delete: async (
        resource: Resource,
        name: string,
        { uid, resourceVersion }: DeleteOptions = {},
      ) =>
        await this.#answer(`delete ${resource.plural}/${name}`, () => {
          const { metadata } = this.read(resource, name);
          const isSame = (wanted: string | undefined, is: string | undefined): boolean =>
            !wanted || wanted === is;
          if (!isSame(uid, metadata.uid) || !isSame(resourceVersion, metadata.resourceVersion))
            throw refusal(409, 'Conflict');
          this.remove(resource, name);
        }),
      /** Applies a JSON merge patch or a strategic merge patch. Labels and annotations that become empty stay as `{}`. */
      patch: async <T extends KubeObject>(
        resource: Resource<T>,
        name: string,
        patch: Partial<T>,
        { subresource, type }: Partial<PatchOptions> = {},
      ) =>
        await this.#answer(
          `patch ${[resource.plural, name, subresource].filter(Boolean).join('/')}`,
          () => {
            const stored = this.read(resource, name);
            const { metadata } = stored;
            const wanted = patch.metadata?.resourceVersion ?? metadata.resourceVersion;
            if (wanted !== metadata.resourceVersion) throw refusal(409, 'Conflict');
            const merged =
              type === 'strategic'
                ? strategicPatch(stored, { ...patch })
                : applyMergePatch(stored as unknown as Json, patch as unknown as Json);
            const { annotations = {}, labels = {} } = (merged as unknown as T).metadata;
            const object = merged as unknown as T;
            return this.#write(resource, stored, {
              ...object,
              metadata: { ...object.metadata, annotations, labels },
            });
          },
        ),
    };
    return used as unknown as KubeClient;
  }

  /** Ignores selectors. */
  #all<T extends KubeObject>(resource: Resource<T>): T[] {
    const prefix = `${pathOf(resource)}/`;
    const all = [...this.#objects].filter(([path]) => path.startsWith(prefix));
    return all.map(([, object]) => copyOf(object) as T);
  }

  async #answer<T>(call: string, answer: () => T): Promise<T> {
    await Promise.resolve();
    this.calls.push(call);
    for (const hook of this.#hooks) hook(call);
    return answer();
  }

  #create<T extends KubeObject>(resource: Resource<T>, object: T): T {
    const { name } = object.metadata;
    if (this.#objects.has(pathOf(resource, { name }))) throw refusal(409, 'AlreadyExists');
    return copyOf(
      this.put(resource, { ...object, metadata: { uid: `${name}-uid`, ...object.metadata } }),
    );
  }

  #replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    subresource: string | undefined,
  ): T {
    const stored = this.read(resource, object.metadata.name);
    const { uid, resourceVersion = '0' } = object.metadata;
    if (
      uid !== stored.metadata.uid ||
      compareResourceVersions(resourceVersion, stored.metadata.resourceVersion ?? '0')
    )
      throw refusal(409, 'Conflict');
    const { status } = stored as T & { readonly status?: unknown };
    const main = { ...object, ...(status === undefined ? {} : { status }) };
    const written = subresource === undefined ? main : { ...object, metadata: stored.metadata };
    return this.#write(resource, stored, written);
  }

  /** As in etcd, a write that changes nothing gives the object no new version. */
  #write<T extends KubeObject>(resource: Resource<T>, stored: T, written: T): T {
    return copyOf(sameJson(written, stored) ? stored : this.put(resource, written));
  }
}

export function refusal(
  code: number,
  reason: string,
  message = `${reason} by the test`,
): StatusError {
  return new StatusError({ kind: 'Status', code, reason, message });
}

/** Returns a copy of a JSON value. It is much faster than structuredClone. */
function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, copyOf(member)]),
  ) as T;
}
