/** Reads the members of records that others may write too. An invalid member counts as absent. */
import { defined, isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';

/** Maps each member to the function that reads its value. The function returns undefined if the value is invalid. */
type Readers = Readonly<Record<string, (value: unknown) => unknown>>;

/** The record that the readers return: every member is optional. */
export type Members<R extends Readers> = {
  readonly [K in keyof R]?: Exclude<ReturnType<R[K]>, undefined>;
};

/** Returns the valid members of the record. Members without a reader are left out. */
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

/** Returns a reader for a member that is a record itself. It returns undefined if the value is not a record. */
export function recordOf<R extends Readers>(
  readers: R,
): (value: unknown) => Members<R> | undefined {
  return (value) => (isRecord(value) ? readMembers(value, readers) : undefined);
}

/** Returns a reader that accepts only the wanted value. */
export function exactly<T extends string | boolean>(wanted: T): (value: unknown) => T | undefined {
  return (value) => (value === wanted ? wanted : undefined);
}

/** Reads a string; undefined if the value is anything else. */
export function aText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Reads a finite number that is 0 or greater; undefined if the value is anything else. */
export function anAmount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}
