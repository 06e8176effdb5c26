/** Reads records that others may write too: an invalid member counts as absent. */
import { defined, isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';

/** For each member, what reads it: undefined where the value is invalid. */
type Readers = Readonly<Record<string, (value: unknown) => unknown>>;

/** What a record has that is read so. */
export type Members<R extends Readers> = {
  readonly [K in keyof R]?: Exclude<ReturnType<R[K]>, undefined>;
};

export function readMembers<R extends Readers>(
  record: Record<string, unknown>,
  readers: R,
): Members<R> {
  const members = Object.entries(readers).map(([name, read]) => [
    name,
    read(ownMember(record, name)),
  ]);
  return defined(Object.fromEntries(members)) as Members<R>;
}

/** Returns the reader of a member that is a record itself. */
export function recordOf<R extends Readers>(
  readers: R,
): (value: unknown) => Members<R> | undefined {
  return (value) => (isRecord(value) ? readMembers(value, readers) : undefined);
}

export function exactly<T extends string | boolean>(wanted: T): (value: unknown) => T | undefined {
  return (value) => (value === wanted ? wanted : undefined);
}

export function aText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function anAmount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}
