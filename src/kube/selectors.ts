/**
 * Parses label and field selectors in the text form of kubectl, and matches label selectors that
 * are objects.
 */

import { ownMember } from '../util/own-member.ts';
import type { KubeObject, LabelSelector, Node } from './resources.ts';

export type Matcher = (object: KubeObject) => boolean;

export type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

/** A selector cannot be parsed. The message quotes the wrong part. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/** API servers allow 253 characters for the prefix, 63 for the name and 63 for the value. */
const NAME =
  '(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?';
const EQUALITY = new RegExp(`^(${NAME})\\s*(==|=|!=)\\s*(${VALUE})$`);
const SET = new RegExp(`^(${NAME})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${NAME})$`);
const KEY_ONLY = new RegExp(`^${NAME}$`);
const OPERATORS = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist']);
const VALUE_ONLY = new RegExp(`^${VALUE}$`);

/**
 * Returns a matcher for a label selector, all of whose requirements must hold. The empty text selects everything. Throws a SelectorError if
 * the text cannot be parsed.
 */
export function parseLabelSelector(text: string): Matcher {
  const selector = { matchExpressions: splitRequirements(text).map(labelRequirement) };
  return ({ metadata }) => matchesLabels(selector, metadata.labels);
}

/**
 * Returns a description of the fault in a label selector; undefined if there is no fault. A comma in a value is a
 * fault, because in the text form it would start a second requirement.
 */
export function selectorFault({
  matchLabels = {},
  matchExpressions = [],
}: LabelSelector = {}): string | undefined {
  const exact = Object.entries(matchLabels).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  return [...exact, ...matchExpressions].map(requirementFault).find((fault) => fault !== undefined);
}

function requirementFault({ key, operator, values = [] }: Requirement): string | undefined {
  const allowed = 'use at most 63 letters, digits, "-", "_" and "."';
  if (!KEY_ONLY.test(key)) return `"${key}" is not a label name; ${allowed}`;
  if (!OPERATORS.has(operator)) return `"${operator}" is not a valid label selector operator`;
  if (operator.endsWith('In') && values.length === 0)
    return `the operator ${operator} for the label ${key} needs at least one value`;
  if (!operator.endsWith('In') && values.length > 0)
    return `the operator ${operator} for the label ${key} allows no values`;
  const wrong = values.find((value) => !VALUE_ONLY.test(value));
  return wrong === undefined ? undefined : `"${wrong}" is not a label value; ${allowed}`;
}

/**
 * The fields that a field selector of a kind may name, each with a function that returns the text
 * that an API server compares.
 */
export type Fields = Readonly<Record<string, (object: KubeObject) => string>>;

/** The fields that a field selector may name for every kind. */
export const objectFields: Fields = { 'metadata.name': ({ metadata }) => metadata.name };
/** The fields that a field selector may name for Nodes. */
export const nodeFields: Fields = {
  ...objectFields,
  'spec.unschedulable': (object: Node) => String(object.spec?.unschedulable ?? false),
};

/**
 * Returns a matcher for requirements `field=value`, `field==value` or `field!=value`, all of which must hold. The empty text selects
 * everything. Throws a SelectorError if the text cannot be parsed.
 */
export function parseFieldSelector(text: string, fields: Fields): Matcher {
  const matchers = splitRequirements(text).map((part) => fieldRequirement(part, fields));
  return (object) => matchers.every((matches) => matches(object));
}

function labelRequirement(text: string): Requirement {
  const equality = EQUALITY.exec(text);
  if (equality) {
    const [, key = '', operator, value = ''] = equality;
    return { key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] };
  }
  const set = SET.exec(text);
  if (set) {
    const [, key = '', operator, list = ''] = set;
    if (list.trim() === '') throw new SelectorError(`"${text}" has no value`);
    const values = list.split(',').map((value) => value.trim());
    const requirement = { key, operator: operator === 'in' ? 'In' : 'NotIn', values };
    const fault = requirementFault(requirement);
    if (fault !== undefined) throw new SelectorError(fault);
    return requirement;
  }
  const [, not, key] = EXISTENCE.exec(text) ?? [];
  if (key === undefined) throw new SelectorError(`"${text}" is not a label requirement`);
  return { key, operator: not === '!' ? 'DoesNotExist' : 'Exists' };
}

function fieldRequirement(text: string, fields: Fields): Matcher {
  const [, name = '', operator, value] = /^([A-Za-z][\w.]*)(==|=|!=)([^\s=!]*)$/.exec(text) ?? [];
  if (operator === undefined) throw new SelectorError(`"${text}" is not a field requirement`);
  const textOf = ownMember(fields, name);
  if (!textOf)
    throw new SelectorError(
      `"${name}" is not a selectable field; use ${Object.keys(fields).join(', ')}`,
    );
  return (object) => (textOf(object) === value) === (operator !== '!=');
}

/**
 * Splits the text at commas outside parentheses. It reads the text once, because a selector may be
 * as long as an object.
 */
function splitRequirements(text: string): string[] {
  if (text.trim() === '') return [];
  const parts: string[] = [];
  let start = 0;
  let isInside = false;
  for (const { 0: mark, index } of text.matchAll(/[(),]/g)) {
    if (mark !== ',') isInside = mark === '(';
    else if (!isInside) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, text.slice(start)].map((part) => part.trim());
}

/**
 * Returns a label selector as text, with its requirements sorted by key. `further` are additional requirements, which are texts already.
 */
export function selectorText(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  ...further: string[]
): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  return [...labels, ...matchExpressions.map(requirementText), ...further]
    .toSorted((a, b) => (keyIn(a) < keyIn(b) ? -1 : 1))
    .join(',');
}

function requirementText({ key, operator, values = [] }: Requirement): string {
  if (operator === 'Exists') return key;
  if (operator === 'DoesNotExist') return `!${key}`;
  return `${key} ${operator.toLowerCase()} (${values.toSorted().join(',')})`;
}

function keyIn(requirement: string): string {
  return requirement.replace(/^!/, '').split(/[ =]/)[0] ?? '';
}

/**
 * Returns true if the selector selects the labels, as in policy/v1: an undefined selector and an unknown operator
 * select nothing, and an empty selector selects everything.
 */
export function matchesLabels(
  selector: LabelSelector | undefined,
  labels?: Readonly<Record<string, string>>,
): boolean {
  return labelMatcher(selector)(labels);
}

/**
 * Returns a function that does for one selector what `matchesLabels` does. This is cheaper than `matchesLabels` if many objects are
 * matched.
 */
export function labelMatcher(
  selector: LabelSelector | undefined,
): (labels?: Readonly<Record<string, string>>) => boolean {
  if (selector === undefined) return () => false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const wanted = Object.entries(matchLabels);
  return (labels = {}) =>
    wanted.every(([key, value]) => ownMember(labels, key) === value) &&
    matchExpressions.every((each) => meets(each, ownMember(labels, each.key)));
}

/**
 * Returns true if `wide` surely selects each object that `narrow` selects, whatever labels the
 * objects have.
 */
export function selectsAllOf(wide: LabelSelector, narrow: LabelSelector): boolean {
  const known = requirementsOf(narrow);
  return requirementsOf(wide).every((wanted) => known.some((each) => implies(each, wanted)));
}

function requirementsOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): Requirement[] {
  const exact = Object.entries(matchLabels).map(
    ([key, value]): Requirement => ({ key, operator: 'In', values: [value] }),
  );
  return [...exact, ...matchExpressions];
}

/** Returns true if all labels that meet the requirement `known` surely also meet `wanted`. */
function implies(known: Requirement, wanted: Requirement): boolean {
  if (known.key !== wanted.key) return false;
  const { operator, values = [] } = known;
  if (operator === 'In') return values.every((value) => meets(wanted, value));
  if (operator === 'DoesNotExist') return meets(wanted, undefined);
  if (operator === 'Exists') return wanted.operator === 'Exists';
  const isWider = (wanted.values ?? []).every((value) => values.includes(value));
  return operator === 'NotIn' && wanted.operator === 'NotIn' && isWider;
}

function meets({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  const isThere = value !== undefined;
  const isAmong = isThere && values.includes(value);
  if (operator === 'In') return isAmong;
  if (operator === 'NotIn') return !isAmong;
  return operator === 'Exists' ? isThere : operator === 'DoesNotExist' && !isThere;
}
