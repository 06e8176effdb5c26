/** Checks what Nodes and their Leases say about the machines: pressure, cordons, and clocks. */
import { type Lease, leases, type Node, nodes, trueCondition } from '../../kube/resources.ts';
import { listed } from '../../util/phrases.ts';
import type { ReadResult } from '../asking.ts';
import type { Check } from '../context.ts';
import type { FoundBy } from '../finding.ts';

const LEASE_NAMESPACE = 'kube-node-lease';
/** A clock that differs by more than this breaks certificates and Leases. */
const MOST_AHEAD_MS = 30_000;
/** A kubelet renews its Lease every ten seconds, and its Node is not Ready after 40 seconds without a renewal. */
const MOST_BEHIND_MS = 60_000;

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

const checkMachines: Check = async ({ list }) => {
  const [allNodes, nodeLeases, ownLeases] = await Promise.all([
    list(nodes),
    list(leases, { namespace: LEASE_NAMESPACE }),
    list(leases, { namespace: 'kube-system' }),
  ]);
  if (allNodes.kind === 'unknown') return [{ state: 'unknown', message: allNodes.why }];
  const findings = [
    ...conditionFindings(allNodes.value),
    ...cordonFindings(allNodes.value),
    ...clocksOf(allNodes.value, nodeLeases, ownLeases),
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

/**
 * Returns the last time that an API server wrote into a Lease of its own, which is at most ten seconds ago. Undefined if
 * there is no such Lease.
 */
function serverTime(all: readonly Lease[]): number | undefined {
  const times = all
    .filter(({ metadata }) => metadata.labels?.['apiserver.kubernetes.io/identity'] !== undefined)
    .map(({ spec }) => Date.parse(spec?.renewTime ?? ''))
    .filter((time) => !Number.isNaN(time));
  return times.length === 0 ? undefined : Math.max(...times);
}

function clocksOf(
  all: readonly Node[],
  nodeLeases: ReadResult<readonly Lease[]>,
  ownLeases: ReadResult<readonly Lease[]>,
): FoundBy[] {
  if (nodeLeases.kind === 'unknown') return [unknownClocks(nodeLeases.why)];
  if (ownLeases.kind === 'unknown') return [unknownClocks(ownLeases.why)];
  return clockFindings(all, nodeLeases.value, serverTime(ownLeases.value));
}

function unknownClocks(why: string): FoundBy {
  return { state: 'unknown', message: `the clocks of nodes: ${why}` };
}

/** Compares the times that kubelets write into their Leases with the clock of the API server. */
function clockFindings(
  all: readonly Node[],
  nodeLeases: readonly Lease[],
  now: number | undefined,
): FoundBy[] {
  if (now === undefined) return [unknownClocks('no API server has a Lease in kube-system')];
  const ready = new Set(
    all
      .filter(({ status }) => trueCondition(status?.conditions, 'Ready') !== undefined)
      .map(({ metadata }) => metadata.name),
  );
  return nodeLeases.flatMap(({ metadata: { name }, spec }): FoundBy[] => {
    const renewed = Date.parse(spec?.renewTime ?? '');
    if (!ready.has(name) || Number.isNaN(renewed)) return [];
    const ahead = renewed - now;
    if (ahead <= MOST_AHEAD_MS && -ahead <= MOST_BEHIND_MS) return [];
    const way = ahead > 0 ? 'ahead of' : 'behind';
    return [
      {
        state: 'blocker',
        object: `Node ${name}`,
        message: `its clock is ${Math.round(Math.abs(ahead) / 1000)} s ${way} that of the API server`,
        cure: 'repair its time synchronization',
      },
    ];
  });
}
