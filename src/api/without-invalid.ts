/** Removes invalid fields from an object, so that the rules that no schema can express are checked on the rest in the same run. */
import type { z } from 'zod';
import { pathOf } from '../util/describe-issue.ts';
import { isRecord } from '../util/json.ts';

export interface ValidPart {
  readonly value: unknown;
  /** The paths of the removed fields, such as `spec.windows`. */
  readonly removed: readonly string[];
}

/** The most rounds of checks and removals. A removal may cause other issues, such as a required field that is missing now. */
const MOST_ROUNDS = 10;

/**
 * Returns the part of `value` that the schema accepts; undefined if nothing but a kind and a name would be left. An item of a list is
 * never removed alone, because the paths of the items after it would change. If an item lacks a time, it gets one, and counts as
 * removed, so that the list stays.
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

/** Times that stand in for missing ones. The date is so early that nobody means a period that ends before it. */
const TIMES = ['00:00', '1h', '1970-01-01'];
/** A field that accepts this text is no time. */
const NO_TIME = '?';

/** Writes a time into the field of the issue. Returns false and changes nothing if no item of a list lacks a time there. */
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

/** The shortest path that may be removed, such as `spec.windows`: without `spec` nothing is left to check. */
const SHORTEST = 2;

/** Removes the innermost object member that contains `path`, and returns its path; undefined if that would remove too much. */
function remove(whole: unknown, path: readonly PropertyKey[]): string | undefined {
  const end = path.findLastIndex((key) => typeof key !== 'number');
  if (end + 1 < SHORTEST) return undefined;
  const parent = memberAt(whole, path.slice(0, end));
  // Another issue may have removed the parent already.
  if (isRecord(parent)) Reflect.deleteProperty(parent, path[end] ?? '');
  return pathOf(path.slice(0, end + 1));
}

/** Returns true if the message names a removed field, or one inside or around it, so that it may be a consequence of the removal. */
export function isAboutRemoved(message: string, removed: readonly string[]): boolean {
  const named = message.match(/\b(?:spec|metadata)(?:\.[\w-]+|\[\d+\])*/g) ?? [];
  return named.some((path) => removed.some((gone) => isWithin(path, gone) || isWithin(gone, path)));
}

function isWithin(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}.`) || path.startsWith(`${other}[`);
}
