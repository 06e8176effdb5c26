/** Finds out whether an API server serves EvictionRequests. */
import type { KubeClient } from '../kube/client.ts';
import { resourceIn } from '../kube/served-kinds.ts';
import { parseJson } from '../util/json.ts';
import { GROUP_VERSION, LIFECYCLE_PATH } from './eviction-request-objects.ts';

/**
 * Returns false if the API server answers that it does not serve the kind. Returns true if there is no answer, or if
 * the permission to ask is missing. In these cases the first EvictionRequest shows whether the kind is served.
 */
export async function areRequestsServed(client: KubeClient, abort: AbortSignal): Promise<boolean> {
  const answer = await client.raw(LIFECYCLE_PATH, { abort }).catch(() => undefined);
  if (answer === undefined || answer.status >= 500 || [401, 403, 429].includes(answer.status))
    return true;
  const list = answer.status === 200 ? parseJson(answer.body) : {};
  return resourceIn(list, GROUP_VERSION, 'EvictionRequest') !== undefined;
}
