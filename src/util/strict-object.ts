/**
 * Makes schemas of objects that refuse unknown members. The error message suggests the known member whose name is most
 * similar.
 */
import { z } from 'zod';
import { nearest } from './nearest.ts';

/** Returns the schema of an object that has only the members of `fields`. */
export function strictObject<S extends z.core.$ZodLooseShape>(
  fields: S,
): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(fields);
  return z.strictObject(fields, { error: (issue) => suggestionOf(issue, known) });
}

/**
 * Returns a text with the members that the author probably meant; undefined if no known member is similar to an unknown
 * member.
 */
function suggestionOf(
  { code, keys }: z.core.$ZodRawIssue,
  known: readonly string[],
): string | undefined {
  if (code !== 'unrecognized_keys' || !Array.isArray(keys)) return undefined;
  const suggestions = keys.map((key) => nearest(key, known));
  if (suggestions.every((name) => name === undefined)) return undefined;
  const told = keys.map((key, index) => {
    const name = suggestions[index];
    return name === undefined ? key : `${key} (did you mean ${name}?)`;
  });
  return `has no member ${told.join(', ')}`;
}
