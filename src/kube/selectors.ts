/** Owns label and field selectors in the text form that kubectl takes: parsing, and matching against objects. */
import { isRecord } from '../util/json.ts';
import type { KubeObject } from './types.ts';

export type Matcher = (object: KubeObject) => boolean;

/** Says where a selector cannot be read; the message quotes the part that is wrong. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

const NAME = '(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?)?';
const EQUALITY = new RegExp(`^(${NAME})\\s*(==|=|!=)\\s*(${VALUE})$`);
const SET = new RegExp(`^(${NAME})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${NAME})$`);
const VALUE_ONLY = new RegExp(`^${VALUE}$`);

/** All requirements must hold; the empty text selects everything. */
export function parseLabelSelector(text: string): Matcher {
  const matchers = splitRequirements(text).map(labelRequirement);
  return (object) => matchers.every((matches) => matches(object));
}

/** Requirements `path=value`, `path==value` or `path!=value`, where path leads to a scalar such as `metadata.name`. */
export function parseFieldSelector(text: string): Matcher {
  const matchers = splitRequirements(text).map(fieldRequirement);
  return (object) => matchers.every((matches) => matches(object));
}

function labelRequirement(text: string): Matcher {
  const labelOf = (key: string, object: KubeObject): string | undefined => object.metadata.labels?.[key];
  const equality = EQUALITY.exec(text);
  if (equality) {
    const [, key = '', operator, value = ''] = equality;
    return operator === '!=' ? (object) => labelOf(key, object) !== value : (object) => labelOf(key, object) === value;
  }
  const set = SET.exec(text);
  if (set) {
    const [, key = '', operator, list = ''] = set;
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

function fieldRequirement(text: string): Matcher {
  const match = /^([A-Za-z][\w.]*)(==|=|!=)([^=!]*)$/.exec(text);
  if (!match) throw new SelectorError(`"${text}" is no field requirement`);
  const [, path = '', operator, value] = match;
  return (object) => (fieldText(object, path) === value) === (operator !== '!=');
}

/** A field that is absent reads as the empty text, as it does on the server. */
function fieldText(object: KubeObject, path: string): string {
  let value: unknown = object;
  for (const part of path.split('.')) value = isRecord(value) ? value[part] : undefined;
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number' ? String(value) : '';
}

/** Splits at commas outside parentheses. */
function splitRequirements(text: string): string[] {
  if (text.trim() === '') return [];
  return text.split(/,(?![^()]*\))/).map((part) => part.trim());
}
