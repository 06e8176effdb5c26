/** Looks up a key in a plain object. */

/**
 * Returns the member that the object itself has under this key. `record[key]` would also find inherited
 * members: every object inherits `constructor`, `toString` and others.
 */
export function ownMember<Value>(
  record: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
