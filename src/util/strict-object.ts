/** Makes schemas of objects that refuse unknown members, and name the member that a misspelt one resembles. */
import { z } from 'zod';
import { nearest } from './nearest.ts';

/** Returns the schema of an object that has only the members of `fields`. */
export function strictObject<S extends z.core.$ZodLooseShape>(
  fields: S,
): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(fields);
  return z.strictObject(fields, { error: (issue) => suggestionOf(issue, known) });
}

/** Returns which members were probably meant; undefined if no member is like an unknown one. */
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
