/** Records the writes of doubles: each call with its author, its answer, and the content of the object. */
import type {
  KubeClient,
  PatchOptions,
  RequestOptions,
  WriteOptions,
} from '../../../../src/kube/client.ts';
import { type KubeObject, pods, type Resource } from '../../../../src/kube/resources.ts';
import { StatusError } from '../../../../src/kube/status-error.ts';

/** One call that changes something, in the form of the recordings of real k0s. */
export interface Write {
  /** The authenticated user. */
  readonly by: string;
  /** The name of the double whose process made the call. */
  readonly via: string;
  /** create, update, patch or delete. */
  readonly verb: string;
  /** The plural name with the subresource, such as `nodes/status`. */
  readonly resource: string;
  readonly name: string;
  /** The HTTP status of the answer; 0 if there was no answer. */
  readonly code: number;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly status?: unknown;
  readonly body?: unknown;
}

export interface Author {
  readonly by: string;
  readonly via: string;
}

/** Makes the call, and records it. */
type Note = <T>(
  verb: Write['verb'],
  resource: string,
  name: string,
  body: unknown,
  call: () => Promise<T>,
) => Promise<T>;

/** Keeps the calls in the order in which they were sent. The code of a call is filled in when its answer arrives. */
export class Recorder {
  readonly #writes: { -readonly [Key in keyof Write]: Write[Key] }[] = [];

  /** Awaited before a write is sent. A test can use it to delay the write until something else has happened. */
  hold: (write: Omit<Write, 'code'>) => Promise<void> = () => Promise.resolve();

  get writes(): readonly Write[] {
    return this.#writes;
  }

  async note<T>(write: Omit<Write, 'code'>, call: () => Promise<T>): Promise<T> {
    await this.hold(write);
    const entry = { ...write, code: 0 };
    this.#writes.push(entry);
    try {
      const answer = await call();
      entry.code =
        write.verb === 'create' || (write.verb === 'patch' && isFirst(answer)) ? 201 : 200;
      return answer;
    } catch (error) {
      if (error instanceof StatusError) entry.code = error.code;
      throw error;
    }
  }
}

/**
 * Returns a client that records its writes as writes of `author`. Its reads end when `abort` aborts. A write that was
 * already sent is not cancelled: the API server has received it even if the process ends, and the record contains the
 * answer.
 */
export function recorded(
  client: KubeClient,
  author: Author,
  recorder: Recorder,
  abort: AbortSignal,
): KubeClient {
  const until = (options: RequestOptions | undefined) => ({
    ...options,
    abort: options?.abort === undefined ? abort : AbortSignal.any([abort, options.abort]),
  });
  const note: Note = async (verb, resource, name, body, call) => {
    // A process that is stopping sends no further writes.
    abort.throwIfAborted();
    return await recorder.note({ ...author, verb, resource, name, ...contentOf(verb, body) }, call);
  };
  return {
    get: async (resource, name, options) => await client.get(resource, name, until(options)),
    list: async (resource, options) => await client.list(resource, until(options)),
    listAll: async (resource, options) => await client.listAll(resource, until(options)),
    watch: (resource, options) => client.watch(resource, until(options)),
    raw: async (path, options) => await client.raw(path, until(options)),
    ...writesOfWholeObjects(client, note),
    patch: async <T extends KubeObject>(
      resource: Resource<T>,
      name: string,
      patch: unknown,
      options: PatchOptions,
    ) =>
      await note(
        'patch',
        labelOf(resource, options),
        name,
        patch,
        async () => await client.patch(resource, name, patch, options),
      ),
    delete: async (resource, name, options) =>
      await note(
        'delete',
        resource.plural,
        name,
        undefined,
        async () => await client.delete(resource, name, options),
      ),
    evict: async (pod, options) =>
      await note(
        'create',
        `${pods.plural}/eviction`,
        pod.name,
        undefined,
        async () => await client.evict(pod, options),
      ),
    close: () => client.close(),
  };
}

function writesOfWholeObjects(
  client: KubeClient,
  note: Note,
): Pick<KubeClient, 'create' | 'replace'> {
  return {
    create: async <T extends KubeObject>(
      resource: Resource<T>,
      object: T,
      options?: WriteOptions,
    ) =>
      await note(
        'create',
        labelOf(resource, options),
        object.metadata.name,
        object,
        async () => await client.create(resource, object, options),
      ),
    replace: async <T extends KubeObject>(
      resource: Resource<T>,
      object: T,
      options?: WriteOptions,
    ) =>
      await note(
        'update',
        labelOf(resource, options),
        object.metadata.name,
        object,
        async () => await client.replace(resource, object, options),
      ),
  };
}

function labelOf({ plural }: Resource, options: WriteOptions | undefined): string {
  return options?.subresource === undefined ? plural : `${plural}/${options.subresource}`;
}

function contentOf(
  verb: Write['verb'],
  body: unknown,
): Pick<Write, 'annotations' | 'status' | 'body'> {
  if (verb === 'patch') return { body };
  const { metadata, status } = (body ?? { metadata: {} }) as KubeObject & { status?: unknown };
  return { annotations: metadata.annotations, status };
}

/**
 * A server-side apply that creates the object gets the status 201. The client does not return the status, but after a
 * creation no other manager owns a field.
 */
function isFirst(answer: unknown): boolean {
  return (
    (answer as { metadata?: { managedFields?: unknown[] } } | undefined)?.metadata?.managedFields
      ?.length === 1
  );
}
