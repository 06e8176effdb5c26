/** Label and field selectors of requests, with the grammar and the refusals of kube-apiserver. */
import { matchesLabels } from '../../src/kube/selectors.ts';
import { isRecord } from '../../src/util/json.ts';
import { badRequest } from './failure.ts';
import type { Kind } from './kinds/kind.ts';
import type { ApiObject } from './store.ts';
import { labelValueFaults, qualifiedNameFaults } from './writes/metadata.ts';

export type Predicate = (object: ApiObject) => boolean;

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const everything: Predicate = () => true;

/** One requirement: `!key`, or a key with an operator and values. */
const REQUIREMENT =
  /^(?<not>!?)\s*(?<key>[^\s=!<>(),]+)\s*(?:(?<sign>==?|!=|<|>)\s*(?<value>[^\s=!<>(),]*)|\s(?<set>in|notin)\s*\((?<list>[^()=!<>]*)\))?$/;

/** Reads `a=b,c!=d,e in (f,g),!h,i>1`. Throws 400 if the text does not parse. */
export function labelPredicate(text: string | null): Predicate {
  if (text === null || text.trim() === '') return everything;
  // Commas within parentheses separate values. All other commas separate requirements.
  const requirements = text.split(/,(?![^(]*\))/).map((term) => parseRequirement(term.trim()));
  return ({ metadata }) =>
    requirements.every((requirement) => meets(requirement, metadata.labels ?? {}));
}

function parseRequirement(term: string): Requirement {
  const {
    not = '',
    key = '',
    sign,
    value = '',
    set,
    list = '',
  } = REQUIREMENT.exec(term)?.groups ?? {};
  const values = set === undefined ? [value] : list.split(',').map((item) => item.trim());
  const operator = not || set || (sign === undefined ? 'exists' : (OPERATORS[sign] ?? 'in'));
  const fault =
    qualifiedNameFaults(key).map((why) => `<nil>: Invalid value: "${key}": ${why}`)[0] ??
    values
      .flatMap(labelValueFaults)
      .map((why) => `values[0][${key}]: Invalid value: "${values[0]}": ${why}`)[0] ??
    ('<>'.includes(operator) && !/^[+-]?\d+$/.test(value)
      ? GREATER_LESS.replace('%', value)
      : undefined);
  if (fault !== undefined || (not && sign))
    throw badRequest(`unable to parse requirement: ${fault ?? `found '${sign}'`}`);
  return { key, operator, values };
}

const OPERATORS: Readonly<Record<string, string>> = { '!=': 'notin', '<': '<', '>': '>' };
const GREATER_LESS = `values[0]: Invalid value: "%": for 'Gt', 'Lt' operators, the value must be an integer`;

function meets(
  { key, operator, values }: Requirement,
  labels: Readonly<Record<string, string>>,
): boolean {
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

/**
 * Returns the predicate for a selector in an object such as a PodDisruptionBudget. An empty selector matches
 * everything.
 */
export function selectorPredicate(selector: unknown): Predicate {
  return ({ metadata }) => isRecord(selector) && matchesLabels(selector, metadata.labels);
}

/**
 * Reads `metadata.name=a,spec.nodeName!=b`. Throws 400 if the text does not parse, or if the kind does not offer the
 * field.
 */
export function fieldPredicate(text: string | null, kind: Kind): Predicate {
  if (text === null || text === '') return everything;
  const terms = text.match(/(?:[^\\,]|\\.)+/g) ?? [];
  const tests = terms.map((term) => fieldTest(term, kind));
  return (object) => tests.every((test) => test(object));
}

/** Returns the name that all selected objects must have; undefined if the selector does not require a name. */
export function nameSelected(text: string | null): string | undefined {
  return /(?:^|,)metadata\.name==?([^,=!\\]+)(?:,|$)/.exec(text ?? '')?.[1];
}

function fieldTest(term: string, kind: Kind): Predicate {
  const match = /^((?:[^\\=!]|\\.)*)(!=|==?)((?:[^\\=]|\\.)*)$/.exec(term);
  if (!match) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const [, field = '', operator, escaped = ''] = match;
  const read = fieldReader(field, kind);
  const value = escaped.replace(/\\(.)/g, '$1');
  return (object) => (read(object) === value) === (operator !== '!=');
}

function fieldReader(field: string, kind: Kind): (object: ApiObject) => string {
  if (field === 'metadata.name') return ({ metadata }) => metadata.name;
  if (field === 'metadata.namespace' && kind.namespaced)
    return ({ metadata }) => metadata.namespace ?? '';
  const read = kind.fields[field];
  if (read) return read;
  throw badRequest(unsupported(field, kind));
}

function unsupported(field: string, kind: Kind): string {
  if (!kind.builtin || Object.keys(kind.fields).length > 0)
    return `field label not supported: ${field}`;
  return `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
}
