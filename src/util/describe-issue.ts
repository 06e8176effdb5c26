/**
 * Describes what is wrong with the input of a person: the field, what was found, and what would be
 * right.
 */
import type { z } from 'zod';
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

const MOST_ISSUES = 10;

/** Returns the sentences of `listIssues` in one line. */
export function describeIssues(error: z.ZodError, whole: string): string {
  return listIssues(error, whole).join('; ');
}

/**
 * Returns a sentence for each issue. `whole` names the input that the paths start from. The input
 * must be parsed with `reportInput`.
 */
export function listIssues({ issues }: z.ZodError, whole: string): string[] {
  const told = issues.slice(0, MOST_ISSUES).map((issue) => describeIssue(issue, whole));
  return [...told, ...(issues.length > MOST_ISSUES ? [`${issues.length - MOST_ISSUES} more`] : [])];
}

/** Returns one sentence that names the field. `whole` stands for an empty path. */
export function describeIssue(issue: z.core.$ZodIssue, whole: string): string {
  const field = pathOf(issue.path) || whole;
  const { code, input, message } = issue;
  if (code === 'unrecognized_keys' && message.startsWith('has ')) return `${field}: it ${message}`;
  if (code === 'unrecognized_keys')
    return `${field}: has no member ${issue.keys.join(', ')}, check the spelling`;
  const found = input === undefined ? 'is missing' : `is ${describeValue(input)}`;
  // The message is a predicate, such as `is not a version; use for example v1.36.3`.
  const subject =
    typeof input === 'object' ? 'it' : describeValue(input).replace(/^the (text|number) /, '');
  if (/^(is|has) /.test(message)) return `${field}: ${subject} ${message}`;
  if (code !== 'invalid_type')
    return `${field}: ${found}, ${message.replace(/^(?:Invalid|Too) \w+: /, '')}`;
  const scalar = typeof input === 'number' || typeof input === 'boolean';
  const advice = issue.expected === 'string' && scalar ? ': put it in quotes' : '';
  return `${field}: ${found}, expected ${EXPECTED[issue.expected] ?? issue.expected}${advice}`;
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
