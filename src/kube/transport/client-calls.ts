/** Makes the calls of a client: their paths, their deadlines, and the checks of their answers. */
import { isRecord } from '../../util/json.ts';
import type { Call, RequestOptions } from '../client.ts';
import { type Address, pathOf, type Resource } from '../resources.ts';

export interface CallOptions {
  /** Our name in `metadata.managedFields`, unless a call gives another name. */
  readonly fieldManager?: string;
  /** Milliseconds for a whole request. The default is 30 s, longer than a healthy server takes. */
  readonly deadlineMs?: number;
  /**
   * Milliseconds that a watch may be silent. The default is 3 min, because servers send a bookmark
   * about once a minute.
   */
  readonly watchIdleMs?: number;
  /** The most objects of a list over all its pages. The default is a million. */
  readonly mostItems?: number;
}

/**
 * Returns functions that make calls with the method GET. A writing call replaces the method and
 * adds a body.
 */
export function callsOf({ deadlineMs: usual = 30_000 }: CallOptions) {
  const callAt = (verb: string, resource: string, path: string, options: RequestOptions): Call => {
    const { abort, deadlineMs = usual } = options;
    return { verb, resource, method: 'GET', path, abort, deadlineMs };
  };
  const callFor = (
    verb: string,
    resource: Resource,
    options: RequestOptions,
    place: Address = {},
  ): Call =>
    callAt(
      verb,
      resource.plural,
      pathOf(resource, { namespace: options.namespace, ...place }),
      options,
    );
  return { callAt, callFor };
}

/**
 * Returns a check for an answer that must be an object of the kind, or of any kind if `kind` is
 * undefined. The check returns what is wrong.
 */
export function objectCheck(kind: string | undefined): (answer: unknown) => string | undefined {
  return (answer) => {
    if (!isRecord(answer))
      return `it answered with ${JSON.stringify(answer).slice(0, 60)}, not with an object`;
    const found = answer['kind'];
    if (kind !== undefined && found !== undefined && found !== kind)
      return `it answered with kind ${JSON.stringify(found)}, not with a ${kind}`;
    return isRecord(answer['metadata']) ? undefined : 'it answered with an object without metadata';
  };
}

/**
 * Returns a check for an answer that must be a list of objects of the kind. The check returns what
 * is wrong.
 */
export function listCheck(kind: string): (answer: unknown) => string | undefined {
  const checkList = objectCheck(`${kind}List`);
  const checkItem = objectCheck(kind);
  return (answer) => {
    const problem = checkList(answer);
    if (problem !== undefined || !isRecord(answer)) return problem;
    const items = answer['items'] ?? [];
    if (!Array.isArray(items)) return 'it answered with a list whose items are not an array';
    return items.map(checkItem).find((found) => found !== undefined);
  };
}

/**
 * Returns a check for an event of a watch on objects of the kind. The check returns what is wrong.
 */
export function eventCheck(kind: string): (event: unknown) => string | undefined {
  const checkObject = objectCheck(kind);
  return (event) => {
    if (!isRecord(event) || typeof event['type'] !== 'string' || !isRecord(event['object']))
      return `it sent ${JSON.stringify(event).slice(0, 60)}, not an event of a watch`;
    return event['type'] === 'ERROR' ? undefined : checkObject(event['object']);
  };
}
