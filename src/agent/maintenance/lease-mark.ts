/** Owns what the agent knows of the mark on its node's lease: by that mark a leader drains the node, or leaves it to itself. */
import type { KubeClient } from '../../kube/client.ts';
import { leases } from '../../kube/resources.ts';
import { isForbidden, isNotFound, isRefusal } from '../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';
import { NODE_LEASES, stampNodeLease } from './node-lease.ts';

export class LeaseMark {
  readonly #client: KubeClient;
  #isRefused = false;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** As `stampNodeLease`. */
  async set(name: string, abort: AbortSignal): Promise<void> {
    try {
      await stampNodeLease(this.#client, name, abort);
      this.#isRefused = false;
    } catch (error) {
      this.#isRefused ||= isRefusal(error);
      throw error;
    }
  }

  /**
   * False where the server let nobody set it, and it is not there: no leader drains the node then. One that is yet to be
   * set, or that may not be looked at, is as good as there: two that wait for each other do no harm.
   */
  async isToBeExpected(name: string, abort: AbortSignal): Promise<boolean> {
    if (!this.#isRefused) return true;
    try {
      const lease = await this.#client.get(leases, name, { namespace: NODE_LEASES, abort });
      return lease.metadata.labels?.[CENTRAL_CORDONING_LABEL] !== undefined;
    } catch (error) {
      if (isNotFound(error)) return false;
      if (isForbidden(error)) return true;
      throw error;
    }
  }
}
