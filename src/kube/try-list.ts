/** Checks whether a kind is served, and whether this user may list it. */
import { defined } from '../util/json.ts';
import type { KubeClient, ListOptions } from './client.ts';
import type { Resource } from './resources.ts';
import { isForbidden, StatusError } from './status-error.ts';

/** A name that no object can have. */
const NO_NAME = '-';

/**
 * Resolves with true, or rejects as a list would. It reads at most one object, from the cache of the server. A list of
 * current objects would delay the lists that follow within 0.1 s, because the server asks its store for progress at
 * most every 0.1 s.
 */
export async function tryList(
  client: KubeClient,
  resource: Resource,
  {
    fieldSelector = '',
    ...options
  }: Pick<ListOptions, 'namespace' | 'fieldSelector' | 'abort'> = {},
): Promise<true> {
  // RBAC may allow only the object with one name, so a selector for one name is kept. Any other selector may match many
  // objects, so it is replaced by a name that no object has.
  const isNamed = fieldSelector.startsWith('metadata.name=');
  const ofName = isNamed ? fieldSelector : `metadata.name=${NO_NAME}`;
  try {
    await client.list(resource, { ...options, fieldSelector: ofName, resourceVersion: '0' });
  } catch (error) {
    throw isForbidden(error) && !isNamed ? withoutName(error) : error;
  }
  return true;
}

/**
 * Returns the error with which the API server refuses a list of all objects. The original error
 * names the object of our selector, which users do not know.
 */
function withoutName({ status, server, cause }: StatusError): StatusError {
  const { name: _name, ...details } = status.details ?? {};
  const message = status.message?.replace(` "${NO_NAME}" is forbidden`, ' is forbidden');
  const plain = { ...status, ...defined({ message }), details };
  return new StatusError(plain, { ...defined({ server }), cause });
}
