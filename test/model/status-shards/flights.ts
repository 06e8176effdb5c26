/**
 * Requests in flight: what a leader in the middle of a round still has to send, and which of its requests may still
 * arrive if it dies there.
 */
import { statusShards } from '../../../src/api/refit/status-shard.ts';
import type { Request, Round } from './shard-leader.ts';

/**
 * A request. `content` is the number of the content that it writes. `version` is the version that it requires, 0 if it
 * creates the object.
 */
export interface Asked {
  readonly key: string;
  readonly part: Request['part'];
  readonly content: number;
  readonly version: number;
}

export type Flight = Round<Asked>;

/** The numbers of the contents of all versions, the oldest first, by key of the object. */
export type Versions = Readonly<Record<string, readonly number[]>>;

/**
 * Removes the requests that can never succeed any more: the object already has a newer version than they require, and
 * versions only grow. Returns undefined if no request is left.
 */
export function standing({ first, next }: Flight, objects: Versions): Flight | undefined {
  const isDoomed = ({ key, version }: Asked): boolean =>
    version > 0 && version < (objects[key]?.length ?? 0);
  const isThere = ({ key, version }: Asked): boolean => version === 0 && objects[key] !== undefined;
  const left = first.filter((each) => !isDoomed(each) && !isThere(each));
  const rest = [...first, ...next].some(isDoomed) ? [] : next;
  return left.length + rest.length === 0 ? undefined : { first: left, next: rest };
}

/**
 * Returns which requests may still arrive after the leader of a round dies: some of the requests that it sends at once,
 * or all of these and some of the later requests.
 */
export function partsOf({ first, next }: Flight): Flight[] {
  const some = first.reduce<Asked[][]>(
    (parts, each) => parts.flatMap((part) => [part, [...part, each]]),
    [[]],
  );
  const cut = some.filter((part) => part.length > 0 && part.length < first.length);
  const ends = next.map((_, at) => ({ first, next: next.slice(0, at) }));
  return [
    ...cut.map((part) => ({ first: part, next: [] })),
    ...ends.filter((end) => sizeOf(end) > 0),
  ];
}

/** Returns the requests that may arrive next, each together with the requests that are left after its arrival. */
export function arrivalsOf({
  first,
  next,
}: Flight): { readonly request: Asked; readonly left: Flight }[] {
  if (first.length === 0)
    return next.slice(0, 1).map((request) => ({ request, left: { first, next: next.slice(1) } }));
  return first.map((request) => ({
    request,
    left: { first: first.filter((each) => each !== request), next },
  }));
}

export function toldOf({ first, next }: Flight): string {
  return [...first, ...next].map(({ key, part }) => `${part} of ${key}`).join(', ');
}

/**
 * Returns the versions that a leader may see: the newest version of each content, the newest version first. For a
 * status shard, the result also contains 0, because the leader may not see the shard at all.
 */
export function seenVersions(key: string, versions: readonly number[]): number[] {
  const newest = versions
    .flatMap((content, at) => (versions.lastIndexOf(content) === at ? [at + 1] : []))
    .toReversed();
  return key.startsWith(`${statusShards.plural}/`) ? [...newest, 0] : newest;
}

const sizeOf = ({ first, next }: Flight): number => first.length + next.length;
