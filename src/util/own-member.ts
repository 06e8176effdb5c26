/** Looks up text in a plain object. */

/**
 * The member that the object itself has under this key. Every object inherits `constructor`, `toString` and others, so
 * `record[key]` finds something for these keys even in an empty object; this function doesn't.
 */
export function ownMember<Value>(
  record: Readonly<Record<string, Value>> | undefined,
  key: string,
): Value | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
