/**
 * Removes invalid fields from an object. The rules that no schema can express are then checked on the remaining fields
 * in the same run.
 */
import type { z } from 'zod';
import { pathOf } from '../util/describe-issue.ts';
import { isRecord } from '../util/json.ts';

export interface ValidPart {
  readonly value: unknown;
  /** The paths of the removed fields, such as `spec.windows`. */
  readonly removed: readonly string[];
}

/**
 * The maximum number of rounds of checks and removals. A removal may cause a new issue, because it may remove a
 * required field.
 */
const MOST_ROUNDS = 10;

/**
 * Returns the part of `value` that the schema accepts; undefined if only a kind and a name would remain. Never removes
 * a single item of a list, because the paths of the items after it would change. If an item of a list lacks a time, the
 * field gets a time, so that the list stays. The path of that field then counts as removed.
 */
export function withoutInvalid(schema: z.ZodType, value: unknown): ValidPart | undefined {
  const part: unknown = structuredClone(value);
  const removed: string[] = [];
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { error } = schema.safeParse(part, { reportInput: true });
    if (!error) return { value: part, removed: [...new Set(removed)] };
    for (const issue of error.issues) {
      if (putTime(schema, part, issue)) {
        removed.push(pathOf(issue.path));
        continue;
      }
      const paths = pathsToRemove(issue).map((path) => remove(part, path));
      if (paths.some((path) => path === undefined)) return undefined;
      removed.push(...paths.flatMap((path) => path ?? []));
    }
  }
  return undefined;
}

/** The times that replace missing times. The date is so early that no user writes a period that ends before it. */
const TIMES = ['00:00', '1h', '1970-01-01'];
/** A text that is not a time. If a field accepts this text, the field is not meant for times. */
const NO_TIME = '?';

/**
 * Writes a time into the field of the issue. Returns false and changes nothing if the issue is not about a missing time
 * in an item of a list.
 */
function putTime(schema: z.ZodType, part: unknown, { path, input }: z.core.$ZodIssue): boolean {
  const key = path.at(-1);
  const parent = memberAt(part, path.slice(0, -1));
  const isInList = path.some((each) => typeof each === 'number');
  if (input !== undefined || !isInList || typeof key !== 'string' || !isRecord(parent))
    return false;
  const field = pathOf(path);
  const isAccepted = (text: string): boolean => {
    Reflect.set(parent, key, text);
    const issues = schema.safeParse(part).error?.issues ?? [];
    return !issues.some((issue) => pathOf(issue.path) === field);
  };
  if (!isAccepted(NO_TIME) && TIMES.some(isAccepted)) return true;
  Reflect.deleteProperty(parent, key);
  return false;
}

function memberAt(whole: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (each, key) => (typeof each === 'object' && each !== null ? Reflect.get(each, key) : undefined),
    whole,
  );
}

function pathsToRemove(issue: z.core.$ZodIssue): (readonly PropertyKey[])[] {
  const { code, path, input } = issue;
  if (code === 'unrecognized_keys') return issue.keys.map((key) => [...path, key]);
  // If a required field is missing, the object that lacks it is removed.
  return [input === undefined ? path.slice(0, -1) : path];
}

/**
 * The minimum length of a path that may be removed, such as `spec.windows`. If `spec` were removed, nothing would be
 * left to check.
 */
const SHORTEST = 2;

/**
 * Removes the innermost field of an object that contains `path`, and returns the path of the removed field. Returns
 * undefined if the removal would remove too much.
 */
function remove(whole: unknown, path: readonly PropertyKey[]): string | undefined {
  const end = path.findLastIndex((key) => typeof key !== 'number');
  if (end + 1 < SHORTEST) return undefined;
  const parent = memberAt(whole, path.slice(0, end));
  // Another issue may have removed the parent already.
  if (isRecord(parent)) Reflect.deleteProperty(parent, path[end] ?? '');
  return pathOf(path.slice(0, end + 1));
}

/**
 * Returns true if the message names a removed field, a field inside it or a field that contains it. The problem in the
 * message may then be a consequence of the removal.
 */
export function isAboutRemoved(message: string, removed: readonly string[]): boolean {
  const named = message.match(/\b(?:spec|metadata)(?:\.[\w-]+|\[\d+\])*/g) ?? [];
  return named.some((path) => removed.some((gone) => isWithin(path, gone) || isWithin(gone, path)));
}

function isWithin(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}.`) || path.startsWith(`${other}[`);
}
