/**
 * Reads and writes the Lease with which tools that disrupt nodes exclude each other. Every tool may acquire the Lease,
 * and Refit holds it while nodes are in progress.
 */
import { holderOf, released, renewalOf, renewed, taken } from '../kube/election/lease-record.ts';
import { type Lease, leases } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';
import { formatDuration } from '../util/duration.ts';
import { printable } from '../util/printable.ts';
import type { LockKind, Look, OtherLock } from './tool.ts';

const PLACE = { namespace: 'refit-system', name: 'disruption' };
const TITLE = `Lease ${PLACE.namespace}/${PLACE.name}`;

/**
 * Seconds after which other tools may acquire the Lease if Refit has stopped. A change of the leader of Refit takes
 * less time.
 */
const DURATION_SECONDS = 300;
const RENEW_MS = 60_000;

export const disruptionLease: LockKind = {
  tool: 'DisruptionLease',
  title: TITLE,
  place: TITLE,
  taking: {
    rights: '`refit install rights coordinate`',
    renewMs: RENEW_MS,
    lastsMs: DURATION_SECONDS * 1000,
  },
  async look(client, look) {
    const { namespace, name } = PLACE;
    const lease = await ifFound(client.get(leases, name, { namespace, abort: look.abort }));
    const holder = lease ? holderOf(lease) : '';
    const isOurs = holder !== '' && look.isOwn(holder);
    const claim = {
      identity: look.holder,
      now: look.now,
      durationSeconds: DURATION_SECONDS,
      labels: {},
    };
    const write = async (next: Lease): Promise<void> => {
      if (next.metadata.uid === undefined) await client.create(leases, next, { namespace });
      else await client.replace(leases, next, { namespace });
    };
    return {
      others: lease && holder !== '' && !isOurs ? othersIn(lease, look) : [],
      renewedAt: isOurs ? Date.parse(lease?.spec?.renewTime ?? '') || 0 : undefined,
      take: async () =>
        await write(lease && isOurs ? renewed(lease, claim) : taken(lease, PLACE, claim)),
      giveBack: async () => {
        if (lease && isOurs) await write(released(lease, look.now));
      },
    };
  },
};

/** Returns the lock of the holder, unless it has expired. A Lease without a duration never expires. */
function othersIn(lease: Lease, { ageOf }: Look): OtherLock[] {
  const { spec: { leaseDurationSeconds: seconds, renewTime, acquireTime } = {} } = lease;
  const lastsMs = seconds === undefined ? Infinity : seconds * 1000;
  if (ageOf(renewalOf(lease), renewTime) >= lastsMs) return [];
  const holder = printable(holderOf(lease));
  const since = acquireTime ?? renewTime;
  const sinceText = since === undefined ? '' : ` since ${printable(since)}`;
  const expires =
    seconds === undefined ? '' : `, or has not renewed it for ${formatDuration(lastsMs)}`;
  return [
    {
      tool: 'DisruptionLease',
      message: `${TITLE} is held by ${holder}${sinceText}`,
      ends: `${holder} releases the Lease${expires}`,
    },
  ];
}
