/** Asks the API server with the rights of the user, and remembers which questions have no answer. */
import type { KubeClient, ListOptions } from '../kube/client.ts';
import { apiVersionOf, clusterScoped, type KubeObject, type Resource } from '../kube/resources.ts';
import { isForbidden, isNotFound } from '../kube/status-error.ts';
import { messageOf } from '../util/errors.ts';

/** An answer, or why there is none. */
export type ReadResult<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'unknown'; readonly why: string };

export function answer<T>(value: T): ReadResult<T> {
  return { kind: 'answer', value };
}

export function unknown(why: string): { readonly kind: 'unknown'; readonly why: string } {
  return { kind: 'unknown', why };
}

/** A page has at most this many objects, so that the complete objects of only one page are in memory. */
const PAGE = 500;

export interface ListChoices<T extends KubeObject> {
  readonly namespace?: string;
  /** Keeps of each object only what the checks read, because thousands of complete objects may not fit into memory. */
  readonly slim?: (object: T) => T;
}

/** What a user may do, in the words of a SubjectAccessReview. */
export interface AccessQuestion {
  readonly verb: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
  /** A path without an object, in place of all other members. */
  readonly path?: string;
}

interface AccessReview extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

const accessReviews = clusterScoped<AccessReview>('authorization.k8s.io/v1', 'SubjectAccessReview');

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
   * Resolves with whether the API server lets the user do this. Nothing is written, although the API calls it a creation.
   * Rejects only if `abort` aborts.
   */
  readonly allows: (user: string, access: AccessQuestion) => Promise<ReadResult<boolean>>;
  /** Resolves with the text at the path, such as `/metrics`; undefined if there is nothing. Rejects only if `abort` aborts. */
  readonly text: (path: string) => Promise<ReadResult<string | undefined>>;
}

export function askingOf(client: KubeClient, abort: AbortSignal): Asking {
  const lists = new Map<string, Promise<ReadResult<readonly KubeObject[]>>>();
  const answered = async <T>(
    what: string,
    ask: () => Promise<T>,
    absent: T,
  ): Promise<ReadResult<T>> => {
    try {
      return answer(await ask());
    } catch (error) {
      abort.throwIfAborted();
      if (isNotFound(error)) return answer(absent);
      return unknown(
        isForbidden(error) ? `you may not read ${what}` : `${what}: ${messageOf(error)}`,
      );
    }
  };
  const listAll = async <T extends KubeObject>(
    resource: Resource<T>,
    namespace: string | undefined,
    slim: (object: T) => T,
  ): Promise<ReadResult<readonly T[]>> => {
    const options: ListOptions = { namespace, abort, limit: PAGE };
    return await answered<readonly T[]>(
      namesOf(resource, namespace),
      async () => (await client.listAll(resource, { ...options, transform: slim })).items,
      [],
    );
  };
  return {
    async list<T extends KubeObject>(resource: Resource<T>, choices: ListChoices<T> = {}) {
      const { namespace, slim = (object: T): T => object } = choices;
      const key = `${apiVersionOf(resource)} ${resource.plural} ${namespace ?? ''}`;
      const asked = lists.getOrInsertComputed(
        key,
        async () => await listAll(resource, namespace, slim),
      );
      return (await asked) as ReadResult<readonly T[]>;
    },
    get: async (resource, name, namespace) =>
      await answered(
        `${resource.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
        async () => await client.get(resource, name, { namespace, abort }),
        undefined,
      ),
    allows: async (user, { verb, path, ...resourceAttributes }) => {
      const attributes =
        path === undefined
          ? { resourceAttributes: { verb, ...resourceAttributes } }
          : { nonResourceAttributes: { verb, path } };
      const review = {
        metadata: { name: '' },
        spec: { user, groups: groupsOf(user), ...attributes },
      };
      const asked = await answered<boolean | undefined>(
        'subjectaccessreviews.authorization.k8s.io',
        async () =>
          (await client.create(accessReviews, review, { abort })).status?.allowed === true,
        undefined,
      );
      if (asked.kind === 'unknown') return asked;
      return asked.value === undefined
        ? unknown('the API server answers no question about rights')
        : answer(asked.value);
    },
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

/** Returns the groups that the API server adds to the user of a ServiceAccount. */
function groupsOf(user: string): string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(user) ?? [];
  if (namespace === undefined) return ['system:authenticated'];
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
}

function namesOf({ plural, group }: Resource, namespace: string | undefined): string {
  const what = group === '' ? plural : `${plural}.${group}`;
  return namespace === undefined ? what : `${what} in the namespace ${namespace}`;
}
