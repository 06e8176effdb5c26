/** Reads an object of a custom kind from YAML or JSON; an error is one line with the field and the problem. */
import { z } from 'zod';
import { apiVersionOf, type KubeObject } from '../kube/resources.ts';
import { RefitError } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { parseYaml } from '../util/yaml.ts';
import type { CustomKind } from './crd.ts';

/** The types of zod in the words of YAML authors; every number in a Plan is an integer. */
const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a text',
  int: 'a whole number',
  number: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** The one object of `kinds` in `text`, as written, without defaults. REFIT_FILE names `file` and the field. */
export function readObject(text: string, file: string, kinds: readonly [CustomKind, ...CustomKind[]]) {
  const fail = (why: string): never => {
    throw new RefitError('REFIT_FILE', `${file}: ${why}`, { hint: FIELDS_HINT });
  };
  const wanted = [...new Set(kinds.map(({ resource }) => resource.kind))].join(' or ');
  const [found, second] = documentsOf(text, fail).filter((value) => value !== null);
  if (found === undefined) return fail(`is empty, expected one ${wanted}`);
  if (second !== undefined) return fail(`holds ${titleOf(found)} and ${titleOf(second)}, expected one ${wanted} only`);
  const header = isRecord(found) ? found : {};
  const kind = kinds.find(
    ({ resource }) => header['kind'] === resource.kind && header['apiVersion'] === apiVersionOf(resource),
  );
  if (!kind) return fail(`holds ${titleOf(found)}, expected ${kinds.map(nameOf).join(' or ')}`);
  const issue = kind.schema.extend(HEADER).safeParse(found, { reportInput: true }).error?.issues[0];
  return issue === undefined ? { kind, object: found as KubeObject } : fail(describe(issue, kind.resource.kind));
}

const FIELDS_HINT = 'docs/reference/crds.md has every field';

function nameOf({ resource }: CustomKind): string {
  const { kind } = resource;
  return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind} of ${apiVersionOf(resource)}`;
}

/** As strict as `kubectl apply`, which refuses misspelt fields too: a lost `sha256` would be a file nobody verifies. */
const HEADER = { apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({ name: z.string() }) };

/** By the rules of YAML 1.1, as kubectl reads: `0755` is octal, `yes` is true; dates stay text there. */
export function documentsOf(text: string, fail: (why: string) => never): unknown[] {
  return parseYaml(text, (why) => fail(`is not YAML: ${why}`), {
    version: '1.1',
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:timestamp'),
  });
}

function titleOf(value: unknown): string {
  if (!isRecord(value)) return describeValue(value);
  const { kind, apiVersion } = value;
  return typeof kind === 'string' && typeof apiVersion === 'string'
    ? `a ${kind} of ${apiVersion}`
    : 'an object without kind and apiVersion';
}

function describe(issue: z.core.$ZodIssue, kind: string): string {
  const field = pathOf(issue.path) || `the ${kind}`;
  if (issue.code === 'unrecognized_keys') return `${field}: has no member ${issue.keys.join(', ')}, check the spelling`;
  if (issue.code !== 'invalid_type') return `${field}: ${issue.message}`;
  const expected = EXPECTED[issue.expected] ?? issue.expected;
  if (issue.input === undefined) return `${field}: is missing, expected ${expected}`;
  const scalar = typeof issue.input === 'number' || typeof issue.input === 'boolean';
  const advice = issue.expected === 'string' && scalar ? ': put it in quotes' : '';
  return `${field}: is ${describeValue(issue.input)}, expected ${expected}${advice}`;
}

function describeValue(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value !== 'string') return `the ${typeof value} ${JSON.stringify(value)}`;
  return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
}

/** As JSONPath writes it: `spec.commands[0].k0supdate`. */
export function pathOf(path: readonly PropertyKey[]): string {
  const parts = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`));
  return parts.join('').replace(/^\./, '');
}
