/** Checks names in fields that the API server does not check before it creates an object with that name. */
import { nameOfNamespace, nameOfObject } from './crd.ts';

const OBJECT = nameOfObject('A name.');
const LABEL = nameOfNamespace('A name.');

/**
 * Returns what is wrong with the name of an object, as a phrase without a subject, such as `has more than 253
 * characters`; undefined if an object can have the name.
 */
export function faultOfObjectName(name: string): string | undefined {
  return faultOf(name, OBJECT, 253);
}

/**
 * Returns what is wrong with a name that allows no dots, such as the name of a volume; undefined if the name is valid.
 */
export function faultOfLabelName(name: string): string | undefined {
  return faultOf(name, LABEL, 63);
}

function faultOf(name: string, schema: typeof OBJECT, most: number): string | undefined {
  const issue = schema.safeParse(name).error?.issues[0];
  if (issue === undefined) return undefined;
  return issue.code === 'too_big' ? `has more than ${most} characters` : issue.message;
}
