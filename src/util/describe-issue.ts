/**
 * Describes what is wrong with the input of a person: the field, what was found, and what would be
 * right.
 */
import type { z } from 'zod';
import { ownMember } from './own-member.ts';
import { counted } from './phrases.ts';
import { printableUrl } from './printable-url.ts';

/** The types of zod in the words of YAML authors. Every number in their files is an integer. */
const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'a whole number',
  number: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** The most issues in one line. */
const MOST_IN_LINE = 10;
/** The most issues in a list. A person does not correct more issues before the next try. */
const MOST_IN_LIST = 100;

/** Returns the sentences of `listIssues` in one line. */
export function describeIssues(error: z.ZodError, whole: string): string {
  return listIssues(error, whole, MOST_IN_LINE).join('; ');
}

/**
 * Returns a sentence for each issue. `whole` is the name of the input in which the paths start. The input must be
 * parsed with `reportInput`.
 */
export function listIssues({ issues }: z.ZodError, whole: string, most = MOST_IN_LIST): string[] {
  const told = issues.slice(0, most).map((issue) => describeIssue(issue, whole));
  return [...told, ...(issues.length > most ? [`${issues.length - most} more`] : [])];
}

/** Returns one sentence that names the field. If the path of the field is empty, `whole` is the name. */
export function describeIssue(issue: z.core.$ZodIssue, whole: string): string {
  const field = pathOf(issue.path) || whole;
  const { code, input, message } = issue;
  // A message of Refit is a predicate, such as `is not a version; use for example v1.36.3`.
  const isPredicate = /^(?:is|has) /.test(message);
  if (code === 'unrecognized_keys' && isPredicate) return `${field}: it ${message}`;
  if (code === 'unrecognized_keys')
    return `${field}: has no member ${issue.keys.join(', ')}, check the spelling`;
  const found = input === undefined ? 'is missing' : `is ${describeValue(input)}`;
  const subject =
    typeof input === 'object' || input === undefined
      ? 'it'
      : describeValue(input).replace(/^the (text|number) /, '');
  if (isPredicate) return `${field}: ${subject} ${message}`;
  const wanted = wantedOf(issue);
  if (wanted !== undefined && Array.isArray(input))
    return `${field}: has ${counted(input.length, 'item')}, expected ${wanted}`;
  if (wanted !== undefined) return `${field}: ${found}, expected ${wanted}`;
  if (code !== 'invalid_type')
    return `${field}: ${found}, ${without(/^(?:Invalid|Too) \w+: /, message)}`;
  const scalar = typeof input === 'number' || typeof input === 'boolean';
  const advice = issue.expected === 'string' && scalar ? ': put it in quotes' : '';
  return `${field}: ${found}, expected ${EXPECTED[issue.expected] ?? issue.expected}${advice}`;
}

/** Returns the sentence of the library without the words that another part of the sentence says. */
function without(words: RegExp, sentence: string): string {
  return sentence.replace(words, '');
}

/** Returns the expected value if a value is too small, too big, or not one of the alternatives. Returns undefined for other issues. */
function wantedOf(issue: z.core.$ZodIssue): string | undefined {
  // A schema with a message of its own describes the problem already.
  if (!/^(?:Invalid|Too) /.test(issue.message)) return undefined;
  if (issue.code === 'too_small')
    return sized(issue.origin, `at least ${issue.minimum}`, Number(issue.minimum));
  if (issue.code === 'too_big')
    return sized(issue.origin, `at most ${issue.maximum}`, Number(issue.maximum));
  if (issue.code === 'invalid_value') return orOf(issue.values.map(String));
  return issue.code === 'invalid_union' ? unionOf(issue.errors) : undefined;
}

/** The things that a limit counts, in the words of YAML authors. */
const COUNTED: Readonly<Record<string, string>> = {
  array: 'item',
  set: 'item',
  map: 'member',
  object: 'member',
  string: 'character',
};

function sized(origin: string, limit: string, count: number): string {
  const what = ownMember(COUNTED, origin);
  if (what === undefined) return `a number of ${limit}`;
  const whole = ownMember(EXPECTED, origin) ?? 'an object';
  return `${whole} with ${limit} ${count === 1 ? what : `${what}s`}`;
}

/** Returns the expected values of all alternatives, joined by `or`; undefined if no alternative names one. */
function unionOf(alternatives: readonly (readonly z.core.$ZodIssue[])[]): string | undefined {
  const wanted = alternatives.flatMap((issues) => {
    const [first] = issues;
    if (first === undefined) return [];
    if (first.code === 'invalid_type') return EXPECTED[first.expected] ?? first.expected;
    return wantedOf(first) ?? without(/^expected /, first.message);
  });
  return wanted.length === 0 ? undefined : orOf([...new Set(wanted)]);
}

function orOf(values: readonly string[]): string {
  const last = values.at(-1) ?? '';
  return values.length < 2 ? last : `${values.slice(0, -1).join(', ')} or ${last}`;
}

/**
 * Returns a value in the form that a message may show. A long text is cut, and a password in a URL
 * is hidden.
 */
export function describeValue(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return `the ${typeof value} ${JSON.stringify(value)}`;
  // Only a text with `://` can be a URL with a password.
  const text = value.includes('://') ? printableUrl(value) : value;
  return `the text ${JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)}`;
}

/** Returns the path in JSONPath notation: `spec.commands[0].k0supdate`. */
export function pathOf(path: readonly PropertyKey[]): string {
  const parts = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`));
  return parts.join('').replace(/^\./, '');
}
