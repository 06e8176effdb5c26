/** Owns label and field selectors: their grammar, their refusals, and what they match. */
import { isRecord } from '../../util/json.ts';
import { badRequest } from './failure.ts';
import { groupVersion, type Kind } from './kind.ts';
import type { ApiObject } from './store.ts';

export type Predicate = (object: ApiObject) => boolean;

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const everything: Predicate = () => true;

/** Reads `a=b,c!=d,e in (f,g),!h,i>1`; throws 400 where it does not parse. */
export function labelPredicate(text: string | null): Predicate {
  if (text === null || text.trim() === '') return everything;
  const requirements = new LabelParser(text).parse();
  return ({ metadata }) => requirements.every((requirement) => matchesLabels(requirement, metadata.labels ?? {}));
}

function matchesLabels({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[key];
  switch (operator) {
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case 'in':
      return value !== undefined && values.includes(value);
    case 'notin':
      return value === undefined || !values.includes(value);
    default:
      return value !== undefined && compareIntegers(value, operator, values[0] ?? '');
  }
}

function compareIntegers(left: string, operator: string, right: string): boolean {
  if (!/^[+-]?\d+$/.test(left)) return false;
  return operator === '>' ? BigInt(left) > BigInt(right) : BigInt(left) < BigInt(right);
}

class LabelParser {
  readonly #tokens: string[];

  constructor(text: string) {
    this.#tokens = text.match(/!=|==|[=!(),<>]|[^\s=!(),<>]+/g) ?? [];
  }

  parse(): Requirement[] {
    const result = [this.#requirement()];
    while (this.#tokens.length > 0) {
      this.#expect(',', "found '%s', expected: ',' or 'end of string'");
      result.push(this.#requirement());
    }
    return result;
  }

  #requirement(): Requirement {
    const negated = this.#tokens[0] === '!';
    if (negated) this.#tokens.shift();
    const key = this.#word('identifier');
    if (negated) return { key, operator: '!', values: [] };
    const operator = this.#tokens[0];
    if (operator === undefined || operator === ',') return { key, operator: 'exists', values: [] };
    this.#tokens.shift();
    if (operator === 'in' || operator === 'notin') return { key, operator, values: this.#list() };
    if (!['=', '==', '!=', '<', '>'].includes(operator)) {
      throw this.#fault(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const value = this.#tokens[0] === undefined || this.#tokens[0] === ',' ? '' : this.#word('identifier');
    if ((operator === '<' || operator === '>') && !/^[+-]?\d+$/.test(value)) {
      throw badRequest(
        `values[0][${key}]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
      );
    }
    const kind = operator === '!=' ? 'notin' : operator === '<' || operator === '>' ? operator : 'in';
    return { key, operator: kind, values: [value] };
  }

  #list(): string[] {
    this.#expect('(', "found '%s' expected: '('");
    const values: string[] = [];
    for (;;) {
      const token = this.#tokens[0];
      values.push(token === ',' || token === ')' ? '' : this.#word('identifier'));
      if (this.#tokens[0] !== ',') break;
      this.#tokens.shift();
    }
    this.#expect(')', "found '%s', expected: ',' or ')'");
    return values;
  }

  #word(expected: string): string {
    const token = this.#tokens.shift();
    if (token === undefined || /^[=!(),<>]/.test(token))
      throw this.#fault(`found '${token ?? ''}', expected: ${expected}`);
    return token;
  }

  #expect(token: string, complaint: string): void {
    const found = this.#tokens.shift() ?? '';
    if (found !== token) throw this.#fault(complaint.replace('%s', found));
  }

  #fault(complaint: string): Error {
    return badRequest(`unable to parse requirement: ${complaint}`);
  }
}

/** The selector that stands in an object such as a PodDisruptionBudget. An empty one matches everything. */
export function selectorPredicate(selector: unknown): Predicate {
  if (!isRecord(selector)) return () => false;
  const labels = Object.entries((selector['matchLabels'] ?? {}) as Record<string, string>);
  const expressions = (selector['matchExpressions'] ?? []) as { key: string; operator: string; values?: string[] }[];
  const operators: Record<string, string> = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: '!' };
  const requirements: Requirement[] = [
    ...labels.map(([key, value]) => ({ key, operator: 'in', values: [value] })),
    ...expressions.map(({ key, operator, values = [] }) => ({ key, operator: operators[operator] ?? '!', values })),
  ];
  return ({ metadata }) => requirements.every((requirement) => matchesLabels(requirement, metadata.labels ?? {}));
}

/** Reads `metadata.name=a,spec.nodeName!=b`; throws 400 for what does not parse and for fields the kind does not offer. */
export function fieldPredicate(text: string | null, kind: Kind): Predicate {
  if (text === null || text === '') return everything;
  const tests = splitTerms(text)
    .filter((term) => term !== '')
    .map((term) => fieldTest(term, kind));
  return (object) => tests.every((test) => test(object));
}

function fieldTest(term: string, kind: Kind): Predicate {
  const match = /^((?:[^\\=!]|\\.)*)(!=|==|=)((?:[^\\=]|\\.)*)$/.exec(term);
  if (!match) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const [, field = '', operator, escaped = ''] = match;
  const read = fieldReader(field, kind);
  const value = escaped.replace(/\\(.)/g, '$1');
  return (object) => (read(object) === value) === (operator !== '!=');
}

function fieldReader(field: string, kind: Kind): (object: ApiObject) => string {
  if (field === 'metadata.name') return ({ metadata }) => metadata.name;
  if (field === 'metadata.namespace' && kind.namespaced) return ({ metadata }) => metadata.namespace ?? '';
  const read = kind.fields[field];
  if (read) return read;
  throw badRequest(unsupported(field, kind));
}

function unsupported(field: string, kind: Kind): string {
  if (!kind.builtin || Object.keys(kind.fields).length > 0) return `field label not supported: ${field}`;
  return `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
}

/** Splits at commas that no backslash escapes. */
function splitTerms(text: string): string[] {
  return text.match(/(?:[^\\,]|\\.)+/g) ?? [];
}

export const kindName = (kind: Kind): string => `${groupVersion(kind)}, Kind=${kind.kind}`;
