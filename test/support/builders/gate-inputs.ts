/**
 * Inputs of gates for tests. By default the input is a target n1 with two platforms, while no other target is at work.
 */

import { censusOf, type GateInput, type Verdict } from '../../../src/engine/gates/types.ts';
import { answered, UNASKED } from '../../../src/engine/model/asked.ts';
import type { DownloadState } from '../../../src/engine/model/downloads.ts';
import type { Role } from '../../../src/engine/model/rollout.ts';
import type { EndpointHealth, ObservedForeignWork } from '../../../src/engine/model/snapshot.ts';
import type { Hold } from '../../../src/signal/holds.ts';
import { later, T0 } from '../clock/times.ts';
import { buildNode } from './nodes.ts';
import { withParts } from './parts.ts';
import { buildPolicy } from './rollout-policies.ts';
import { buildRollout } from './rollouts.ts';
import { buildFacts, buildTargets, type KnownFacts, NOTHING_KNOWN } from './snapshots.ts';
import { buildStage, PAYLOAD } from './stages.ts';
import { buildTarget } from './targets.ts';

export const DOWN: EndpointHealth = { name: 'c2', ready: false, detail: '/readyz says 500' };
export const NODE = {
  name: 'n1',
  unschedulable: false,
  cordonOwner: undefined,
  taintOwner: undefined,
};
export const CLEAR = { evictable: 2, obstacles: [], refused: [] };
export const OBSTACLE = {
  budget: 'default/web',
  pods: ['default/web-1'],
  reason: 'it wants all of them',
};
/** Returns the input with a policy that does not let a node start while its budgets allow no disruption. */
export function waitingForBudgets(given: GateInput): GateInput {
  const drain = { ...given.policy.drain, waitsForBudgets: true };
  return { ...given, policy: { ...given.policy, drain } };
}

export const refusedPods = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    pod: `p${index + 1}`,
    reason: 'has no controller, so nothing would create it again' as const,
  }));
const TWO = { 'linux-amd64': PAYLOAD, 'linux-arm64': PAYLOAD };

export function input(
  role: Role,
  facts: KnownFacts = {},
  controlPlane?: readonly EndpointHealth[],
  payloads: GateInput['stage']['payloads'] = TWO,
): GateInput {
  const stage = buildStage(role, ['n1'], { payloads });
  const target = buildTarget('n1');
  const health = controlPlane ? answered(controlPlane) : UNASKED;
  return {
    ...NOTHING_KNOWN,
    cluster: { ...NOTHING_KNOWN.cluster, controlPlane: health },
    stage,
    target,
    rollout: buildRollout([stage]),
    facts: buildFacts(facts),
    targets: buildTargets({ [target.key]: facts }),
    run: 'plan-uid/id1',
    earlier: [],
    isBegun: false,
    room: 1,
    policy: buildPolicy(),
    now: T0,
    census: undefined,
    checked: [],
    unfit: new Map(),
    expectedMs: undefined,
  };
}

/** Returns the input for a worker that somebody holds back. */
export function held(hold: Hold): GateInput {
  return input('worker', { hold });
}

export const other = (name: string, role: Role, since = later(0)): ObservedForeignWork => ({
  name,
  role,
  attempt: since,
  since,
  leftMs: 60_000,
});
export const among = (role: Role, others: readonly ObservedForeignWork[], room = 1): GateInput =>
  withParts(input(role), { outside: { foreignWork: others }, room });

/** Returns the input for a target that has succeeded at `since`, which is T0 by default. */
export function resting(restMs: number | undefined, now: number, since = later(0)): GateInput {
  const given = input('worker', { observation: { kind: 'succeeded', attempt: since, since } });
  return { ...given, now, stage: { ...given.stage, ...(restMs === undefined ? {} : { restMs }) } };
}

export const judged = (version: string): GateInput =>
  withParts(input('worker', { version }), {
    cluster: { apiServers: [{ name: 'c1', version: version }] },
  });

type Answer = Exclude<DownloadState['answer'], 'impossible'> | { readonly problem: string };

/** Returns the input with the answers of the agents, by the names of their nodes. */
export function saying(
  answers: Readonly<Record<string, Answer>>,
  payloadsWatchedMs?: number,
): GateInput {
  const stage = buildStage('worker', Object.keys(answers));
  const checked = stage.targets.map((target) => {
    const answer = answers[target.name] ?? 'unasked';
    const downloads =
      typeof answer === 'string' ? { answer } : { answer: 'impossible' as const, ...answer };
    return { stage, target, downloads };
  });
  return withParts(input('worker'), { checked, term: { payloadsWatchedMs } });
}

export const withWatched = (given: GateInput, watchedMs: number): GateInput => ({
  ...given,
  facts: { ...given.facts, watchedMs },
});

/** Returns `pass`, or the answer of the gate with its code and its sentence, as one line. */
export function said(verdict: Verdict): string {
  return verdict.kind === 'pass'
    ? 'pass'
    : `${verdict.kind} ${verdict.reason.code}: ${verdict.reason.message}`;
}

/**
 * Returns the input for a worker w1 among Nodes with these zones. The Nodes in `away` are not Ready. One node of each
 * zone may be unavailable.
 */
export function inZones(
  zones: Readonly<Record<string, string>>,
  away: readonly string[],
): GateInput {
  const fleet = Object.entries(zones).map(([name, zone]) =>
    buildNode(name, { labels: { zone } }, away.includes(name) ? 'False' : 'True'),
  );
  const target = buildTarget('w1');
  const policy = buildPolicy({ name: 'zones', perDomain: { label: 'zone', limit: { nodes: 1 } } });
  const facts = buildFacts({ labels: { zone: zones['w1'] ?? '' } });
  return withParts(input('worker'), {
    target,
    policy,
    facts,
    cluster: { fleet },
    census: censusOf(fleet, []),
  });
}

/** Returns the input of a worker under a limit of one node, while the Node n2 is away. */
export function besideNodeAway(): GateInput {
  const away = new Set(['n2']);
  const census = {
    all: new Set(['n1', 'n2']),
    unavailable: away,
    cordoned: new Set<string>(),
    busy: away,
  };
  return {
    ...input('worker'),
    policy: buildPolicy({ name: 'one', maxUnavailable: { nodes: 1 } }),
    census,
  };
}

/** Returns the input for a target that goes back to an earlier version. */
export function goingBack(given: GateInput): GateInput {
  return { ...given, stage: { ...given.stage, goesBack: true } };
}
