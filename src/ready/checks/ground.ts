/** Checks what Nodes and their Leases say about the machines: pressure, cordons, and clocks. */
import { type Lease, leases, type Node, nodes, trueCondition } from '../../kube/resources.ts';
import { listed } from '../../util/phrases.ts';
import { serverAddresses } from '../api-servers.ts';
import type { Asking, ReadResult } from '../asking.ts';
import type { Check } from '../context.ts';
import { type FoundBy, grouped } from '../finding.ts';

const LEASE_NAMESPACE = 'kube-node-lease';
/** A clock that differs by more than this breaks certificates and Leases. */
const MOST_AHEAD_MS = 30_000;
/** A Lease that is valid for 40 seconds, as by default, is renewed every ten seconds, and its Node may be Ready until it ends. */
const LEASE_SECONDS = 40;
/** A renewal may be late by this much. */
const LATE_MS = 20_000;
/** API servers renew their Leases every ten seconds, so those with the same time differ by less. */
const MOST_APART_MS = MOST_AHEAD_MS + 10_000;

/** The conditions that are bad if they are true, and what to do about them. */
const BAD: ReadonlyMap<string, string> = new Map([
  ['DiskPressure', 'free space on its disk: an upgrade needs room for binaries and images'],
  ['MemoryPressure', 'free memory on it'],
  ['PIDPressure', 'end processes on it'],
  ['NetworkUnavailable', 'repair its network'],
]);

export const checkGround: Check = async (context) => {
  const found = await Promise.all(
    [checkMachines, checkDialects, ...context.groundChecks].map(
      async (check) => await check(context),
    ),
  );
  const findings = found.flat();
  // What a check found is more than that another one found nothing.
  const problems = findings.filter(({ state }) => state !== 'ok');
  return problems.length > 0 ? problems : findings;
};

const checkMachines: Check = async (context) => {
  const { list } = context;
  const [allNodes, nodeLeases, ownLeases] = await Promise.all([
    list(nodes),
    list(leases, { namespace: LEASE_NAMESPACE }),
    list(leases, { namespace: 'kube-system' }),
  ]);
  if (allNodes.kind === 'unknown') return [{ state: 'unknown', message: allNodes.why }];
  const findings = [
    ...conditionFindings(allNodes.value),
    ...cordonFindings(allNodes.value),
    ...(await clocksOf(context, allNodes.value, nodeLeases, ownLeases)),
  ];
  if (findings.length > 0) return findings;
  return [{ state: 'ok', message: 'no node has pressure, a cordon, or a wrong clock' }];
};

const checkDialects: Check = async ({ dialects, to, ...asking }) => {
  const found = await Promise.all(dialects.map(async (each) => await each.machines(asking, to)));
  return found.flat();
};

function conditionFindings(all: readonly Node[]): FoundBy[] {
  return [...BAD].flatMap(([type, cure]): FoundBy[] => {
    const bad = all.filter(({ status }) => trueCondition(status?.conditions, type) !== undefined);
    if (bad.length === 0) return [];
    const object = `Node ${listed(bad.map(({ metadata }) => metadata.name))}`;
    return [{ state: 'warning', object, message: `it reports ${type}`, cure }];
  });
}

function cordonFindings(all: readonly Node[]): FoundBy[] {
  const cordoned = all.filter(({ spec }) => spec?.unschedulable === true);
  if (cordoned.length === 0) return [];
  return [
    {
      state: 'warning',
      object: `Node ${listed(cordoned.map(({ metadata }) => metadata.name))}`,
      message: 'it is cordoned already: an upgrade does not remove a cordon that it did not set',
      cure: 'find out who cordoned it, and run kubectl uncordon if nobody needs that any more',
    },
  ];
}

/** The last time that an API server wrote into a Lease of its own. */
interface ServerTime {
  readonly name: string;
  /** Milliseconds since the Unix epoch, by the clock of the API server. At most ten seconds ago if it runs. */
  readonly time: number;
}

/** Returns what the API servers wrote into their Leases, the latest time first. */
function serverTimes(all: readonly Lease[]): ServerTime[] {
  return all
    .filter(({ metadata }) => metadata.labels?.['apiserver.kubernetes.io/identity'] !== undefined)
    .map(({ metadata: { name, labels = {} }, spec }) => ({
      name: labels['kubernetes.io/hostname'] ?? name,
      time: Date.parse(spec?.renewTime ?? ''),
    }))
    .filter(({ time }) => !Number.isNaN(time))
    .toSorted((one, other) => other.time - one.time);
}

async function clocksOf(
  { list }: Pick<Asking, 'list'>,
  all: readonly Node[],
  nodeLeases: ReadResult<readonly Lease[]>,
  ownLeases: ReadResult<readonly Lease[]>,
): Promise<FoundBy[]> {
  if (nodeLeases.kind === 'unknown') return [unknownClocks(nodeLeases.why)];
  if (ownLeases.kind === 'unknown') return [unknownClocks(ownLeases.why)];
  const times = serverTimes(ownLeases.value);
  const [latest] = times;
  if (latest === undefined) return [unknownClocks('no API server has a Lease in kube-system')];
  const apart = areApart(times) ? await serversApart(list, times) : undefined;
  return apart === undefined ? clockFindings(all, nodeLeases.value, latest.time) : [apart];
}

function unknownClocks(why: string): FoundBy {
  return { state: 'unknown', message: `the clocks of nodes: ${why}` };
}

function areApart(times: readonly ServerTime[]): boolean {
  return (times[0]?.time ?? 0) - (times.at(-1)?.time ?? 0) > MOST_APART_MS;
}

/**
 * Returns a finding about API servers whose Leases have different times, because then no node can be compared with them.
 * Undefined if those with an old time have ended: Kubernetes keeps the Lease of an API server that has ended for an hour.
 */
async function serversApart(
  list: Asking['list'],
  times: readonly ServerTime[],
): Promise<FoundBy | undefined> {
  const addresses = await serverAddresses(list);
  // A single address may be one of a load balancer.
  const running =
    addresses.kind === 'answer' && addresses.value.length > 1 ? addresses.value.length : undefined;
  if (running !== undefined && !areApart(times.slice(0, running))) return undefined;
  const first = times[0];
  const last = times.at(-1);
  const seconds = secondsOf((first?.time ?? 0) - (last?.time ?? 0));
  const object = `API server ${listed(times.map(({ name }) => name))}`;
  if (running === undefined || running < times.length)
    return {
      state: 'unknown',
      object,
      message: `their last Leases are ${seconds} s apart (${last?.name} has the oldest): either their clocks differ, or one of them has ended, so the clocks of nodes cannot be compared with them`,
      cure: 'compare the clocks of the control plane',
    };
  return {
    state: 'blocker',
    object,
    message: `their clocks differ: that of ${last?.name} is ${seconds} s behind that of ${first?.name}`,
    cure: 'repair their time synchronization',
  };
}

function secondsOf(milliseconds: number): number {
  return Math.round(Math.abs(milliseconds) / 1000);
}

/** Compares the times that kubelets write into their Leases with the clock of the API server. */
function clockFindings(all: readonly Node[], nodeLeases: readonly Lease[], now: number): FoundBy[] {
  const byName = new Map(nodeLeases.map((each) => [each.metadata.name, each]));
  // A node that is not Ready may have stopped, and its Lease with it.
  const ready = all.filter(
    ({ status }) => trueCondition(status?.conditions, 'Ready') !== undefined,
  );
  const found = ready.flatMap(({ metadata: { name } }) => {
    const finding = clockFinding(byName.get(name), now);
    return finding === undefined ? [] : [{ ...finding, object: `Node ${name}` }];
  });
  return grouped(found);
}

/** Returns what the Lease of a node that is Ready says about its clock; undefined if the clock is right. */
function clockFinding(lease: Lease | undefined, now: number): FoundBy | undefined {
  const { renewTime = '', leaseDurationSeconds = LEASE_SECONDS } = lease?.spec ?? {};
  const renewed = Date.parse(renewTime);
  if (Number.isNaN(renewed))
    return {
      state: 'unknown',
      message: `its clock: it has no Lease in ${LEASE_NAMESPACE} with the time of a renewal`,
    };
  const ahead = renewed - now;
  const mostBehind = Math.max(leaseDurationSeconds, LEASE_SECONDS) * 1000 + LATE_MS;
  if (ahead <= MOST_AHEAD_MS && -ahead <= mostBehind) return undefined;
  const way = ahead > 0 ? 'ahead of' : 'behind';
  return {
    state: 'blocker',
    message: `its clock is ${secondsOf(ahead)} s ${way} that of the API server`,
    cure: 'repair its time synchronization',
  };
}
