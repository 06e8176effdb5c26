/** Asks API servers whether they are ready. */
import { messageOf } from '../../util/errors.ts';
import { isSuccess } from '../../util/http-status.ts';
import type { Endpoint } from '../contract/world.ts';
import type { EndpointHealth } from '../model/snapshot.ts';

/**
 * Asks the API server of a controller whether it is ready. Resolves with the HTTP status of `/readyz`; rejects if no answer comes in
 * time.
 */
export type AskReadyz = (host: string, name: string) => Promise<number>;

/**
 * Asks all API servers at the same time, so that an API server that does not answer does not delay the other API
 * servers. Never rejects.
 */
export async function askControlPlane(
  endpoints: readonly Endpoint[],
  ask: AskReadyz,
): Promise<EndpointHealth[]> {
  return await Promise.all(
    endpoints.map(async ({ name, host }) => {
      if (host === undefined) return { name, ready: false, detail: 'has no InternalIP' };
      try {
        const status = await ask(host, name);
        return isSuccess(status)
          ? { name, ready: true }
          : { name, ready: false, detail: `/readyz says ${status}` };
      } catch (error) {
        return { name, ready: false, isSilent: true, detail: messageOf(error) };
      }
    }),
  );
}
