/** A KubeClient whose lists and watches follow a script. */
import type {
  KubeClient,
  ListAllOptions,
  ListOptions,
  WatchEvent,
  WatchOptions,
} from '../../src/kube/client.ts';
import type { KubeList, KubeObject } from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';

/**
 * One step of a watch: an event, an error to throw, `nothing` to wait until the watch is aborted, or a promise to wait
 * for. The stream ends after the last step.
 */
export type Step = WatchEvent<KubeObject> | Error | Promise<void> | 'nothing';

export interface Scripts {
  /** One script for each watch, in the order of the watches. Later watches deliver nothing. */
  readonly watches?: readonly (readonly Step[])[];
  readonly lists?: readonly (KubeList<KubeObject> | Error)[];
}

export interface ScriptedClient {
  readonly client: KubeClient;
  /** The lists and watches that were requested, in their order. */
  readonly asked: ({ readonly verb: 'list' | 'watch' } & Omit<
    WatchOptions & ListOptions,
    'abort'
  >)[];
}

export function scriptedClient({ watches = [], lists = [] }: Scripts): ScriptedClient {
  const nextWatches = [...watches];
  const nextLists = [...lists];
  const asked: ScriptedClient['asked'] = [];
  const client = {
    listAll: async (_resource: unknown, given: ListAllOptions<KubeObject>) => {
      const { abort: _, transform = (each) => each, ...options } = given;
      asked.push({ verb: 'list', ...options });
      const answer = await Promise.resolve(nextLists.shift() ?? new Error('no list is scripted'));
      if (answer instanceof Error) throw answer;
      return { ...answer, items: answer.items.map(transform) };
    },
    watch: (_resource: unknown, { abort, ...options }: WatchOptions) => {
      asked.push({ verb: 'watch', ...options });
      return play(nextWatches.shift() ?? ['nothing'], abort);
    },
  };
  return { client: client as unknown as KubeClient, asked };
}

async function* play(
  steps: readonly Step[],
  abort: AbortSignal | undefined,
): AsyncGenerator<WatchEvent<KubeObject>> {
  for (const step of steps) {
    if (step instanceof Error) throw step;
    if (step === 'nothing') await untilAborted(abort);
    else if (step instanceof Promise) await step;
    else yield step;
  }
}

async function untilAborted(abort: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((_resolve, reject) => {
    const end = (): void => reject(new Error('aborted'));
    if (abort?.aborted) end();
    abort?.addEventListener('abort', end, { once: true });
  });
}

export function object(name: string, uid: string, resourceVersion: number): KubeObject {
  return { metadata: { name, uid, resourceVersion: String(resourceVersion) } };
}

export function event(
  type: 'ADDED' | 'MODIFIED' | 'DELETED',
  name: string,
  uid: string,
  version: number,
): Step {
  return { type, object: object(name, uid, version) };
}

export function bookmark(resourceVersion: number): Step {
  return {
    type: 'BOOKMARK',
    object: { metadata: { name: '', resourceVersion: String(resourceVersion) } },
  };
}

/** The bookmark that ends a streamed list. */
export function initialEnd(resourceVersion: number): Step {
  const annotations = { 'k8s.io/initial-events-end': 'true' };
  return {
    type: 'BOOKMARK',
    object: { metadata: { name: '', resourceVersion: String(resourceVersion), annotations } },
  };
}

export function errorEvent(code: number, reason: string): Step {
  return {
    type: 'ERROR',
    object: { kind: 'Status', code, reason, message: `${reason} as scripted` },
  };
}

export function refusal(code: number, reason: string): StatusError {
  return new StatusError({ kind: 'Status', code, reason, message: `${reason} as scripted` });
}

export function list(resourceVersion: number, ...items: KubeObject[]): KubeList<KubeObject> {
  return { metadata: { resourceVersion: String(resourceVersion) }, items };
}
