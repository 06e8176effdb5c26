/** Reads from the answer of the API server which right is missing. The answer says it only as a sentence. */
import { isForbidden } from './status-error.ts';

/** The right that a user would need. `namespace` is undefined if the request is about the whole cluster. */
interface MissingRight {
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
  readonly group: string;
  readonly namespace: string | undefined;
}

const SENTENCE =
  /User "([^"]*)" cannot (\w+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?/;

/** Returns the missing right; undefined if the request failed for another reason, such as an admission policy. */
export function missingRightIn(thrown: unknown): MissingRight | undefined {
  const found = isForbidden(thrown) ? SENTENCE.exec(thrown.message) : null;
  if (!found) return undefined;
  const [, user = '', verb = '', resource = '', group = '', namespace] = found;
  return { user, verb, resource, group, namespace };
}
