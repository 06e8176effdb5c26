/**
 * Watches whether the controller manager and the scheduler of the cluster work. Both elect a leader by a Lease, and the
 * leader renews the Lease every few seconds. An API server can be ready although none of them works. The monitor reads
 * the Leases regularly in the background, as long as a plan needs that.
 */
import type { KubeClient } from '../kube/client.ts';
import { type Lease, leases } from '../kube/resources.ts';
import { ifFound, isForbidden } from '../kube/status-error.ts';
import { type BackgroundReader, createBackgroundReader } from '../util/background-reader.ts';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import { printable } from '../util/printable.ts';

/** The namespace of the Leases, and their names, which are also the names of the components. */
export const COMPONENTS_NAMESPACE = 'kube-system';
export const COMPONENTS = ['kube-controller-manager', 'kube-scheduler'] as const;

/**
 * What is known about one component. working: its leader renewed the Lease a short time ago · stopped: nobody has
 * renewed the Lease for too long · unclear: the Lease is old, and was not watched for long enough yet.
 */
export interface ComponentState {
  readonly name: string;
  readonly state: 'working' | 'stopped' | 'unclear';
  /** The time at which this process last saw that the Lease was renewed, in milliseconds since the Unix epoch. */
  readonly renewedAt?: number | undefined;
  /** The milliseconds for which nobody has renewed the Lease, as far as this process knows. */
  readonly silentMs: number;
}

/** The states of the components that have a Lease. `problem` says why the Leases could not be read. */
export interface ComponentReadings {
  readonly states: readonly ComponentState[];
  readonly problem?: string | undefined;
  /** True if this process may not read the Leases, so that upgrades do not wait for the components. */
  readonly isForbidden?: boolean | undefined;
}

/** What is known about the components. `unasked`: the first attempt to read their Leases has not ended. */
type Components = 'unasked' | ComponentReadings;

export type ComponentMonitor = BackgroundReader<ComponentReadings>;

export interface MonitorParts {
  readonly client: Pick<KubeClient, 'get'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}

/** Milliseconds between two attempts to read the Leases. By default, a leader renews its Lease every 2 s. */
const EVERY_MS = 1000;
/** If the time in the Lease is at most this old by the clock of this process, the component works. */
const FRESH_MS = 10_000;
/** The duration of a Lease that does not say how long it is valid. It is the default of both components. */
const DURATION_S = 15;
/** Milliseconds that are added to the duration of a Lease before it counts as expired, as time for a new leader. */
const GRACE_MS = 15_000;

/** One Lease as this process saw it. */
interface Seen {
  readonly version: string;
  /** The monotonic time at which this version was seen first. */
  readonly since: number;
  readonly renewedAt: number | undefined;
  readonly limitMs: number;
}

export function createComponentMonitor(parts: MonitorParts): ComponentMonitor {
  const { clock } = parts;
  const looks = new Looks(parts);
  return createBackgroundReader({
    name: 'control plane components',
    clock,
    everyMs: EVERY_MS,
    read: async (ended, before) => await looks.read(ended, before),
    isNews: (before, found) => summaryOf(found) !== summaryOf(before),
    forgotten: () => looks.forget(),
  });
}

/** Reads the Leases, and remembers since when each version of a Lease is known. */
class Looks {
  readonly #parts: MonitorParts;
  readonly #seen = new Map<string, Seen>();

  constructor(parts: MonitorParts) {
    this.#parts = parts;
  }

  forget(): void {
    this.#seen.clear();
  }

  async read(abort: AbortSignal, before: Components): Promise<ComponentReadings> {
    try {
      const found = await Promise.all(
        COMPONENTS.map(async (name) => ({ name, lease: await this.#leaseOf(name, abort) })),
      );
      return { states: found.flatMap(({ name, lease }) => this.#stateOf(name, lease) ?? []) };
    } catch (error) {
      // A Lease that cannot be read proves nothing, so its time is counted anew afterwards.
      this.#seen.clear();
      if (abort.aborted) return { states: [] };
      const problem = this.#problemOf(error, before);
      return { states: [], problem, isForbidden: isForbidden(error) };
    }
  }

  async #leaseOf(name: string, abort: AbortSignal): Promise<Lease | undefined> {
    const { client } = this.#parts;
    return await ifFound(client.get(leases, name, { namespace: COMPONENTS_NAMESPACE, abort }));
  }

  #stateOf(name: string, lease: Lease | undefined): ComponentState | undefined {
    if (lease === undefined) {
      this.#seen.delete(name);
      return undefined;
    }
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const known = this.#seen.get(name);
    const seen = known?.version === versionOf(lease.spec) ? known : newlySeen(lease, known, clock);
    this.#seen.set(name, seen);
    const silentMs = now - seen.since;
    const { renewedAt, limitMs } = seen;
    if (renewedAt !== undefined && silentMs <= limitMs)
      return { name, state: 'working', renewedAt, silentMs };
    return { name, state: silentMs > limitMs ? 'stopped' : 'unclear', renewedAt, silentMs };
  }

  #problemOf(error: unknown, known: Components): string {
    const problem = isForbidden(error)
      ? `the controller may not read the Leases ${COMPONENTS.join(' and ')} in ${COMPONENTS_NAMESPACE} (the Role refit-components of deploy/rbac.yaml grants this right)`
      : printable(messageOf(error));
    const before = known === 'unasked' ? undefined : known.problem;
    const effect = isForbidden(error)
      ? 'so upgrades do not wait for them'
      : 'so upgrades wait until their Leases can be read';
    if (before !== problem)
      this.#parts.log.warn(
        `cannot see whether the controller manager and the scheduler work, ${effect}`,
        { problem },
      );
    return problem;
  }
}

/** Returns what is known of a version of a Lease that this process has not seen before. */
function newlySeen({ spec }: Lease, before: Seen | undefined, clock: Clock): Seen {
  const ageMs = Math.abs(clock.now() - Date.parse(spec?.renewTime ?? ''));
  // A Lease that changed while this process watched it was renewed, whatever the clock of the component says.
  const isRenewed = (before !== undefined || ageMs <= FRESH_MS) && Boolean(spec?.holderIdentity);
  const limitMs = (spec?.leaseDurationSeconds ?? DURATION_S) * 1000 + GRACE_MS;
  return {
    version: versionOf(spec),
    since: clock.monotonic(),
    // At its first look, this process did not see the renewal. It may be as old as the Lease says.
    renewedAt: isRenewed ? clock.now() - (before === undefined ? ageMs : 0) : before?.renewedAt,
    limitMs,
  };
}

/** Returns as text what changes in a Lease when its holder renews it. Labels and annotations do not matter. */
function versionOf(spec: Lease['spec']): string {
  return `${spec?.holderIdentity} ${spec?.renewTime}`;
}

function summaryOf(known: Components): string {
  if (known === 'unasked') return known;
  return [known.problem, ...known.states.map(({ name, state }) => `${name} ${state}`)].join();
}
