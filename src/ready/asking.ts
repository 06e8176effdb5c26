/** Asks the API server with the rights of the user, and remembers which questions have no answer. */
import type { KubeClient, ListOptions } from '../kube/client.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../kube/resources.ts';
import { isForbidden, isNotFound } from '../kube/status-error.ts';
import { messageOf } from '../util/errors.ts';
import { semaphore } from '../util/waits.ts';
import { type AccessQuestion, type AccessReview, accessReviews, reviewOf } from './access.ts';

/** An answer, or why there is none. */
export type ReadResult<T> = { readonly kind: 'answer'; readonly value: T } | NoAnswer;

export interface NoAnswer {
  readonly kind: 'unknown';
  readonly why: string;
  /** True if the user lacks a right. */
  readonly lacksRight?: true;
}

export function answer<T>(value: T): ReadResult<T> {
  return { kind: 'answer', value };
}

export function unknown(why: string): NoAnswer {
  return { kind: 'unknown', why };
}

/** A page has this many objects by default, so that the complete objects of only one page are in memory. */
const PAGE = 500;
/** At most this many questions about rights wait for the API server at the same time. */
const RIGHTS_AT_ONCE = 8;

export interface ListChoices<T extends KubeObject> {
  readonly namespace?: string;
  readonly labelSelector?: string;
  /** The number of complete objects that may be in memory; 500 by default. */
  readonly pageSize?: number;
  /** Keeps of each object only what the checks read, because thousands of complete objects may not fit into memory. */
  readonly slim?: (object: T) => T;
}

export interface Asking {
  /**
   * Resolves with all objects of the kind. Lists each kind only once, so all callers must choose the same. Resolves with
   * an empty list if the API server does not serve the kind. Rejects only if `abort` aborts.
   */
  readonly list: <T extends KubeObject>(
    resource: Resource<T>,
    choices?: ListChoices<T>,
  ) => Promise<ReadResult<readonly T[]>>;
  /** Resolves with the object; undefined if it does not exist. Rejects only if `abort` aborts. */
  readonly get: <T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    namespace?: string,
  ) => Promise<ReadResult<T | undefined>>;
  /**
   * Resolves with whether the API server lets the user do this. Asks each question only once. Nothing is written,
   * although the API calls it a creation. Rejects only if `abort` aborts.
   */
  readonly allows: (user: string, access: AccessQuestion) => Promise<ReadResult<boolean>>;
  /** Resolves with the text at the path, such as `/metrics`; undefined if there is nothing. Rejects only if `abort` aborts. */
  readonly text: (path: string) => Promise<ReadResult<string | undefined>>;
}

/** Resolves with what `ask` resolves with; with `absent` if the object does not exist. `what` names it for a person. */
type Answered = <T>(what: string, ask: () => Promise<T>, absent: T) => Promise<ReadResult<T>>;

function answeredWith(abort: AbortSignal, rejects: (error: unknown) => boolean): Answered {
  return async (what, ask, absent) => {
    try {
      return answer(await ask());
    } catch (error) {
      abort.throwIfAborted();
      if (isNotFound(error)) return answer(absent);
      if (rejects(error)) throw error;
      return isForbidden(error)
        ? { ...unknown(`you may not read ${what}`), lacksRight: true }
        : unknown(`${what}: ${messageOf(error)}`);
    }
  };
}

/** Returns a function that asks about rights, and remembers each answer. */
function rightsAsker(client: KubeClient, answered: Answered, abort: AbortSignal): Asking['allows'] {
  const known = new Map<string, Promise<ReadResult<boolean>>>();
  const withSlot = semaphore(RIGHTS_AT_ONCE);
  const isAllowed = async (review: AccessReview): Promise<ReadResult<boolean>> => {
    const asked = await answered<boolean | undefined>(
      'answers to questions about rights (create subjectaccessreviews)',
      async () => (await client.create(accessReviews, review, { abort })).status?.allowed === true,
      undefined,
    );
    if (asked.kind === 'unknown') return asked;
    return asked.value === undefined
      ? unknown('the API server answers no question about rights')
      : answer(asked.value);
  };
  return async (user, access) => {
    const review = reviewOf(user, access);
    return await known.getOrInsertComputed(
      JSON.stringify(review.spec),
      async () => await withSlot(async () => await isAllowed(review)),
    );
  };
}

/**
 * With `rejects`, each question also rejects with an error for which this function returns true. It is called with each
 * error but those about objects that do not exist.
 */
export function askingOf(
  client: KubeClient,
  abort: AbortSignal,
  rejects: (error: unknown) => boolean = () => false,
): Asking {
  const lists = new Map<string, Promise<ReadResult<readonly KubeObject[]>>>();
  const answered = answeredWith(abort, rejects);
  const listAll = async <T extends KubeObject>(
    resource: Resource<T>,
    { namespace, labelSelector, pageSize = PAGE, slim = (object) => object }: ListChoices<T>,
  ): Promise<ReadResult<readonly T[]>> => {
    const options: ListOptions = { namespace, labelSelector, abort, limit: pageSize };
    return await answered<readonly T[]>(
      namesOf(resource, namespace),
      async () => (await client.listAll(resource, { ...options, transform: slim })).items,
      [],
    );
  };
  return {
    async list<T extends KubeObject>(resource: Resource<T>, choices: ListChoices<T> = {}) {
      const { namespace = '', labelSelector = '' } = choices;
      const key = `${apiVersionOf(resource)} ${resource.plural} ${namespace} ${labelSelector}`;
      const asked = lists.getOrInsertComputed(key, async () => await listAll(resource, choices));
      return (await asked) as ReadResult<readonly T[]>;
    },
    get: async (resource, name, namespace) =>
      await answered(
        `${resource.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
        async () => await client.get(resource, name, { namespace, abort }),
        undefined,
      ),
    allows: rightsAsker(client, answered, abort),
    text: async (path) => {
      const asked = await answered(path, async () => await client.raw(path, { abort }), undefined);
      if (asked.kind === 'unknown') return asked;
      const { status = 404, body } = asked.value ?? {};
      if (status === 200) return answer(body);
      if (status === 404) return answer(undefined);
      return unknown(
        status === 401 || status === 403
          ? `you may not read ${path}`
          : `${path} answered ${status}`,
      );
    },
  };
}

/** Returns how a sentence calls the objects of the kind, such as `plans.upgrade.cattle.io`. */
export function namesOf({ plural, group }: Resource, namespace?: string): string {
  const what = group === '' ? plural : `${plural}.${group}`;
  return namespace === undefined ? what : `${what} in the namespace ${namespace}`;
}
