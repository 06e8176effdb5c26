/** Leader election as client-go does it, on the lease that k0s uses, with the marker that newer releases put on it. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import { type Lease, leases } from '../../../../src/kube/resources.ts';
import { isNotFound } from '../../../../src/kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../../src/signal/names.ts';
import { type Clock, microTime, sleep } from '../../../../src/util/clock.ts';
import { messageOf } from '../../../../src/util/errors.ts';
import type { Logger } from '../../../../src/util/log.ts';
import type { Times } from '../times.ts';

export const LEADER_LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };

export interface CandidateParts {
  readonly client: KubeClient;
  /** 32 hexadecimal digits, new for each process. */
  readonly identity: string;
  /** Whether the lease says that its holder cordons all nodes. */
  readonly centralCordoning: boolean;
  readonly times: Pick<Times, 'leaseDuration' | 'renewDeadline' | 'leaseRetry'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

export class Candidate {
  readonly #parts: CandidateParts;
  readonly #onChange: (leads: boolean) => void;
  /** The state of the Lease at the last read, and the time at which this state was first read. */
  #seen: { readonly lease: Lease; readonly text: string; readonly at: number } | undefined;
  #leads = false;

  /**
   * `onChange` is called for every change of leadership. It is not called for the state at the start, in which the
   * candidate does not lead.
   */
  constructor(parts: CandidateParts, onChange: (leads: boolean) => void) {
    this.#parts = parts;
    this.#onChange = onChange;
  }

  /** Takes part in the election until `signal` aborts. A leader then keeps the Lease, like a process that is killed. */
  async run(abort: AbortSignal): Promise<void> {
    const { clock, times, random } = this.#parts;
    let renewedAt = clock.monotonic();
    while (!abort.aborted) {
      if (await this.#try()) {
        renewedAt = clock.monotonic();
        this.#turn(true);
      } else if (clock.monotonic() - renewedAt > times.renewDeadline) this.#turn(false);
      const jitter = this.#leads ? 1 : 1 + random() * 1.2;
      await sleep(clock, times.leaseRetry * jitter, abort).catch(() => undefined);
    }
  }

  /** Releases the Lease, like a process that receives SIGTERM. */
  async release(): Promise<void> {
    const { client, clock, identity } = this.#parts;
    const lease = this.#seen?.lease;
    if (!this.#leads || lease?.spec?.holderIdentity !== identity) return;
    const now = microTime(clock.now());
    const spec = {
      ...lease.spec,
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: now,
      renewTime: now,
    };
    await client.replace(leases, { ...lease, spec });
  }

  #turn(leads: boolean): void {
    if (leads === this.#leads) return;
    this.#leads = leads;
    this.#parts.log.info(leads ? 'leading' : 'pending');
    this.#onChange(leads);
  }

  async #try(): Promise<boolean> {
    const { client, identity, log, clock } = this.#parts;
    try {
      const lease = await this.#read();
      if (lease === undefined) {
        this.#see(await client.create(leases, this.#claim(undefined)));
        return true;
      }
      this.#see(lease);
      const { holderIdentity = '', leaseDurationSeconds = 0 } = lease.spec ?? {};
      const runsUntil = (this.#seen?.at ?? 0) + leaseDurationSeconds * 1_000;
      if (holderIdentity !== '' && holderIdentity !== identity && runsUntil > clock.monotonic())
        return false;
      this.#see(await client.replace(leases, this.#claim(lease)));
      return true;
    } catch (error) {
      log.info('the lease was not taken', { problem: messageOf(error) });
      return false;
    }
  }

  async #read(): Promise<Lease | undefined> {
    const { namespace, name } = LEADER_LEASE;
    return await this.#parts.client.get(leases, name, { namespace }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  }

  #see(lease: Lease): void {
    const text = JSON.stringify(lease.spec);
    const at = this.#seen?.text === text ? this.#seen.at : this.#parts.clock.monotonic();
    this.#seen = { lease, text, at };
  }

  #claim(lease: Lease | undefined): Lease {
    const { identity, centralCordoning, times, clock } = this.#parts;
    const now = microTime(clock.now());
    const isOurs = lease?.spec?.holderIdentity === identity;
    const labels = {
      ...lease?.metadata.labels,
      ...(centralCordoning ? { [CENTRAL_CORDONING_LABEL]: identity } : {}),
    };
    const transitions = lease?.spec?.leaseTransitions ?? 0;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...LEADER_LEASE, ...lease?.metadata, labels },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.max(1, Math.ceil(times.leaseDuration / 1_000)),
        renewTime: now,
        acquireTime: isOurs ? (lease.spec?.acquireTime ?? now) : now,
        leaseTransitions: lease === undefined ? 0 : transitions + (isOurs ? 0 : 1),
      },
    };
  }
}
