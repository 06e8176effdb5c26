/** Owns label and field selectors in the text form that kubectl takes: parsing, and matching against objects. */
import type { KubeObject, Node } from './types.ts';

export type Matcher = (object: KubeObject) => boolean;

/** Says where a selector cannot be read; the message quotes the part that is wrong. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/** At most 253 characters of prefix, 63 of name and 63 of value, as API servers take them. */
const NAME = '(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?';
const EQUALITY = new RegExp(`^(${NAME})\\s*(==|=|!=)\\s*(${VALUE})$`);
const SET = new RegExp(`^(${NAME})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${NAME})$`);
const VALUE_ONLY = new RegExp(`^${VALUE}$`);

/** All requirements must hold; the empty text selects everything. */
export function parseLabelSelector(text: string): Matcher {
  const matchers = splitRequirements(text).map(labelRequirement);
  return (object) => matchers.every((matches) => matches(object));
}

/** The fields of a kind that can be selected by, each with the text that an API server compares. */
export type Fields = Readonly<Record<string, (object: KubeObject) => string>>;

/** Of every kind. */
export const objectFields: Fields = { 'metadata.name': ({ metadata }) => metadata.name };
export const nodeFields: Fields = {
  ...objectFields,
  'spec.unschedulable': (object: Node) => String(object.spec?.unschedulable ?? false),
};

/** Requirements `field=value`, `field==value` or `field!=value`, all of which must hold; the empty text selects everything. */
export function parseFieldSelector(text: string, fields: Fields): Matcher {
  const matchers = splitRequirements(text).map((part) => fieldRequirement(part, fields));
  return (object) => matchers.every((matches) => matches(object));
}

function labelRequirement(text: string): Matcher {
  const equality = EQUALITY.exec(text);
  if (equality) {
    const [, key = '', operator, value = ''] = equality;
    return operator === '!=' ? (object) => labelOf(key, object) !== value : (object) => labelOf(key, object) === value;
  }
  const set = SET.exec(text);
  if (set) {
    const [, key = '', operator, list = ''] = set;
    if (list.trim() === '') throw new SelectorError(`"${text}" names no value`);
    const values = new Set(list.split(',').map((value) => value.trim()));
    for (const value of values) if (!VALUE_ONLY.test(value)) throw new SelectorError(`"${value}" is no label value`);
    const has = (object: KubeObject): boolean => values.has(labelOf(key, object) ?? '\0');
    return operator === 'in' ? has : (object) => !has(object);
  }
  const existence = EXISTENCE.exec(text);
  if (!existence) throw new SelectorError(`"${text}" is no label requirement`);
  const [, not, key = ''] = existence;
  return (object) => (labelOf(key, object) === undefined) === (not === '!');
}

function labelOf(key: string, { metadata: { labels = {} } }: KubeObject): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function fieldRequirement(text: string, fields: Fields): Matcher {
  const [, name = '', operator, value] = /^([A-Za-z][\w.]*)(==|=|!=)([^\s=!]*)$/.exec(text) ?? [];
  if (operator === undefined) throw new SelectorError(`"${text}" is no field requirement`);
  const textOf = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (!textOf) throw new SelectorError(`"${name}" cannot be selected by, only ${Object.keys(fields).join(', ')}`);
  return (object) => (textOf(object) === value) === (operator !== '!=');
}

/** Splits at commas outside parentheses. */
function splitRequirements(text: string): string[] {
  if (text.trim() === '') return [];
  return text.split(/,(?![^()]*\))/).map((part) => part.trim());
}
