/** Requests in flight: what a leader still sends in the middle of a round, and what remains if it dies there. */
import { statusShards } from '../../../src/api/refit/status-shard.ts';
import type { Request, Round } from './shard-leader.ts';

/** A request by number of its content; `version` is the one that it holds for, 0 where it creates. */
export interface Asked {
  readonly key: string;
  readonly part: Request['part'];
  readonly content: number;
  readonly version: number;
}

export type Flight = Round<Asked>;

/** By key: numbers of contents, oldest first. */
export type Versions = Readonly<Record<string, readonly number[]>>;

/** Without what can never arrive any more: versions only grow. Undefined where nothing is left. */
export function standing({ first, next }: Flight, objects: Versions): Flight | undefined {
  const isDoomed = ({ key, version }: Asked): boolean =>
    version > 0 && version < (objects[key]?.length ?? 0);
  const isThere = ({ key, version }: Asked): boolean => version === 0 && objects[key] !== undefined;
  const left = first.filter((each) => !isDoomed(each) && !isThere(each));
  const rest = [...first, ...next].some(isDoomed) ? [] : next;
  return left.length + rest.length === 0 ? undefined : { first: left, next: rest };
}

/** What may be left of a round whose leader dies: any part of what it asks for at once, or that and some of what follows. */
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

/** The requests that may arrive next, each with what is left then. */
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

/** The newest version of each content, the newest first; a status shard may not be seen at all. */
export function seenVersions(key: string, versions: readonly number[]): number[] {
  const newest = versions
    .flatMap((content, at) => (versions.lastIndexOf(content) === at ? [at + 1] : []))
    .toReversed();
  return key.startsWith(`${statusShards.plural}/`) ? [...newest, 0] : newest;
}

const sizeOf = ({ first, next }: Flight): number => first.length + next.length;
