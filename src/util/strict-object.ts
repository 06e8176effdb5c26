/**
 * Makes schemas of objects that refuse unknown members. The error message suggests the known member whose name is most
 * similar.
 */
import { z } from 'zod';
import { nearest } from './nearest.ts';

/** Returns a message about members that belong to another place; undefined if it knows nothing about them. */
export type MisplacedMembers = (unknown: readonly string[]) => string | undefined;

/** Returns the schema of an object that has only the members of `fields`. */
export function strictObject<S extends z.core.$ZodLooseShape>(
  fields: S,
  misplaced: MisplacedMembers = () => undefined,
): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(fields);
  return z.strictObject(fields, {
    error: (issue) => misplaced(keysOf(issue)) ?? suggestionOf(issue, known),
  });
}

/** Returns the unknown members that the issue is about. */
function keysOf({ code, keys }: z.core.$ZodRawIssue): string[] {
  return code === 'unrecognized_keys' && Array.isArray(keys) ? keys : [];
}

/**
 * Returns a text with the members that the author probably meant; undefined if no known member is similar to an unknown
 * member.
 */
function suggestionOf(issue: z.core.$ZodRawIssue, known: readonly string[]): string | undefined {
  const keys = keysOf(issue);
  const suggestions = keys.map((key) => nearest(key, known));
  if (suggestions.every((name) => name === undefined)) return undefined;
  const told = keys.map((key, index) => {
    const name = suggestions[index];
    return name === undefined ? key : `${key} (did you mean ${name}?)`;
  });
  return `has no member ${told.join(', ')}`;
}
