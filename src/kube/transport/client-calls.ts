/** Makes the calls of a client: their paths, their deadlines, and what their answers must look like. */
import { isRecord } from '../../util/json.ts';
import type { Call, RequestOptions } from '../client.ts';
import { type Address, pathOf, type Resource } from '../resources.ts';

export interface CallOptions {
  /** Our name in `metadata.managedFields`, unless a call names another. */
  readonly fieldManager?: string;
  /** Milliseconds for a whole request; 30 s by default, longer than any healthy answer takes. */
  readonly deadlineMs?: number;
  /** Milliseconds without data on a watch; 3 min by default: servers send a bookmark about once a minute. */
  readonly watchIdleMs?: number;
  /** Objects of the longest list over all its pages; a million by default. */
  readonly mostItems?: number;
}

/** Returns makers of calls that read, which only `method` and content turn into others. */
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

/** Returns a check that describes what is wrong with an answer that is no object of the kind; without `kind` any kind is good. */
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

/** Returns a check that describes what is wrong with an answer that is no list of objects of the kind. */
export function listCheck(kind: string): (answer: unknown) => string | undefined {
  const checkList = objectCheck(`${kind}List`);
  const checkItem = objectCheck(kind);
  return (answer) => {
    const problem = checkList(answer);
    if (problem !== undefined || !isRecord(answer)) return problem;
    const items = answer['items'] ?? [];
    if (!Array.isArray(items)) return 'it answered with a list whose items are no array';
    return items.map(checkItem).find((found) => found !== undefined);
  };
}

/** Returns a check that describes what is wrong with an event of a watch on objects of the kind. */
export function eventCheck(kind: string): (event: unknown) => string | undefined {
  const checkObject = objectCheck(kind);
  return (event) => {
    if (!isRecord(event) || typeof event['type'] !== 'string' || !isRecord(event['object']))
      return `it sent ${JSON.stringify(event).slice(0, 60)}, not an event of a watch`;
    return event['type'] === 'ERROR' ? undefined : checkObject(event['object']);
  };
}
