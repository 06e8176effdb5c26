/** The next moves at one node: turns of its agent, its service's life, and faults. */
import { isStaged } from '../../src/agent/journal.ts';
import type { ServiceFacts } from '../../src/agent/service/host.ts';
import type { Node } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { RESTART_TIMEOUT_MS } from './agent-turn.ts';
import { NOW } from './cluster.ts';
import { endsOf } from './hook-runs.ts';
import {
  factsOf,
  failure,
  fallen,
  type Host,
  lifeOf,
  powerLost,
  powerLostForGood,
  processOf,
  UNSEEN,
} from './host.ts';
import { contentOf, type NodeState, objectAt, written } from './node-state.ts';
import type { Numbering } from './numbering.ts';
import type { TakenTurns } from './taken-turns.ts';
import { theirMoves } from './their-agent.ts';
import { showsVersion, tellingVersion } from './told-versions.ts';
import type { Answers, Look, NodeRules, Trail } from './turn-trail.ts';

export interface NodeMove {
  readonly label: string;
  /** See Edge. */
  readonly fair: boolean;
  /** The number of faults that the move uses up. */
  readonly cost: number;
  /** True where somebody else writes the node's object. */
  readonly isForeign?: boolean;
  readonly to: NodeState;
}

/** Like a NodeMove, with the number of the state that it leads to. */
export interface NodeEdge extends Omit<NodeMove, 'to'> {
  readonly to: number;
}

interface Kind {
  readonly rules: NodeRules;
  readonly turns: TakenTurns;
  readonly states: Numbering<NodeState>;
}

export async function edgesOf(
  node: NodeState,
  { rules, turns, states }: Kind,
): Promise<NodeEdge[]> {
  if (node.host.dark)
    return backoffOf(node, rules).map((move) => ({ ...move, to: states.numberOf(move.to) }));
  const trailOf = turns.of(node);
  const life = lifeOf(node.host, rules.qualityOf);
  const { qualityOf, ownAgent, ownAgentFacts, isLast } = rules;
  const ownAgentIn = (file: string) => ownAgentFacts(file, ownAgent, isLast);
  const moves = life.map(
    ({ label, host }): NodeMove => ({ label, fair: true, cost: 0, to: { ...node, host } }),
  );
  for (const view of viewsOf(node)) {
    for (const facts of factsOf(node.host, node.journal, qualityOf, ownAgentIn)) {
      moves.push(...(await agentMoves({ node, rules, trailOf }, { view, facts }, life.length > 0)));
    }
  }
  moves.push(
    ...theirMoves(node, rules),
    ...misfortunes(node, rules),
    ...podMoves(node, rules),
    ...cordonMoves(node, rules),
    ...hookMoves(node),
    ...versionMoves(node, rules),
  );
  return distinct(node, moves, states);
}

/** Returns the only move of a node without power: the cluster notices that the node is gone. */
function backoffOf(node: NodeState, { contents, isNode }: NodeRules): NodeMove[] {
  const { status, ...object } = objectAt(contents, node.versions) as Node;
  if (!isNode || status?.conditions?.[0]?.status === 'False') return [];
  const silent: Node = {
    ...object,
    status: { ...status, conditions: [{ type: 'Ready', status: 'False' }] },
  };
  const to = written(node, contentOf(contents, silent));
  return [{ label: 'its Node is found not Ready', fair: true, cost: 0, to }];
}

/** Returns the versions that the agent may have seen last; undefined stands for no version yet. */
function viewsOf({ versions, floor, known }: NodeState): (number | undefined)[] {
  const seen = versions.slice(floor - 1).map((_, index) => floor + index);
  return known ? seen : [undefined, ...seen];
}

interface TurnParts {
  readonly node: NodeState;
  readonly rules: NodeRules;
  readonly trailOf: ReturnType<TakenTurns['of']>;
}

/**
 * Returns the possible results of one turn at the present time. If the agent would only wait, returns the results after
 * half of its timeout and at the end of the timeout. Such a late turn counts as a fault if the service would have
 * continued by itself and was merely too slow.
 */
async function agentMoves(
  parts: TurnParts,
  look: { view: number | undefined; facts: ServiceFacts },
  serviceMoves: boolean,
): Promise<NodeMove[]> {
  const now = await turnMoves(parts, { ...look, elapsedMs: 0 }, 0);
  if (now.length > 0) return now;
  const cost = serviceMoves ? 1 : 0;
  if (cost > parts.rules.faults) return [];
  const half = await turnMoves(parts, { ...look, elapsedMs: RESTART_TIMEOUT_MS / 2 }, cost);
  return [...half, ...(await turnMoves(parts, { ...look, elapsedMs: RESTART_TIMEOUT_MS }, cost))];
}

async function turnMoves(
  { node, rules, trailOf }: TurnParts,
  look: Look,
  cost: number,
): Promise<NodeMove[]> {
  const trail = await trailOf(look, {});
  const whole = trail.steps.at(-1);
  if (!whole) return [];
  const lag =
    look.view === node.versions.length
      ? ''
      : `, seeing ${look.view ?? 'none'} of ${node.versions.length}`;
  const time = ['', ' at half its time', ' at the end of its time'][look.elapsedMs] ?? '';
  const label = `the agent ${did(trail)}${time}${lag}`;
  const moves: NodeMove[] = [{ label, fair: lag === '' && cost === 0, cost, to: whole.to }];
  trail.steps.forEach(({ to }, index) => {
    const before = did(trail, index + 1);
    moves.push({
      label: `the agent ${before}${lag}, then crashes`,
      fair: false,
      ...crash(to, cost),
    });
  });
  if (cost === rules.faults) return moves;
  for (const [what, asked, answers] of FAILURES) {
    if (!trail.asked.has(asked)) continue;
    const other = await trailOf(look, answers);
    const to = other.steps.at(-1)?.to ?? node;
    moves.push({
      label: `the agent ${did(other)}${lag}, but ${what}`,
      fair: false,
      cost: cost + 1,
      to,
    });
  }
  return moves;
}

/** The ways in which the effect of a turn on the API server or the host can fail. */
const FAILURES: readonly (readonly [string, keyof Answers, Answers])[] = [
  ['the answer is lost', 'isAnswerLost', { isAnswerLost: true }],
  ['the step fails', 'outcome', { outcome: failure('it failed'), isUndone: true }],
  ['the step fails after its work', 'outcome', { outcome: failure('it failed') }],
];

function did({ steps }: Trail, count = steps.length): string {
  return steps
    .slice(0, count)
    .map(({ label }) => label)
    .join(', ');
}

/**
 * Returns the node after a crash of its agent. The crash is taken from the crashes that this node may have. If the node
 * has no crashes left, the crash counts as a fault in addition to `cost`.
 */
function crash(node: NodeState, cost = 0): Pick<NodeMove, 'cost' | 'to'> {
  const to = { ...node, floor: node.versions.length, known: false };
  return node.crashes > 0
    ? { cost, to: { ...to, crashes: node.crashes - 1 } }
    : { cost: cost + 1, to };
}

/**
 * The power is lost only while the agent works on the service. Before or after that, nodes may go down for reasons that
 * are not explored here, in any number.
 */
function misfortunes(node: NodeState, { contents, power, qualityOf }: NodeRules): NodeMove[] {
  const { host, journal } = node;
  const touched = written(node, node.versions.at(-1) ?? 0);
  const moves: NodeMove[] = [
    {
      label: 'somebody else writes its object',
      fair: false,
      cost: 1,
      to: touched,
      isForeign: true,
    },
  ];
  const status = decodeSignal(objectAt(contents, node.versions).metadata.annotations)?.status
    ?.status;
  if (journal.phase === 'idle' || journal.phase === 'proven' || ENDS.includes(status)) return moves;
  if (
    journal.phase === 'soaking' &&
    host.service?.life === 'up' &&
    qualityOf(host.service.file) === 'brief'
  ) {
    moves.push({
      label: 'the service falls',
      fair: false,
      cost: 0,
      to: { ...node, host: fallen(host) },
    });
  }
  if (power === 'stays') return moves;
  const off = crash({ ...node, host: powerLost(host) });
  moves.push({ label: 'the power goes and comes back', fair: false, ...off });
  if (power === 'returns') return moves;
  const dark = { ...node, host: powerLostForGood(host) };
  return [...moves, { label: 'the power goes for good', fair: false, cost: 1, to: dark }];
}

/** Returns the end of the leader's drain, and the return of pods once the node is schedulable again. */
function podMoves(node: NodeState, { contents, podsReturn }: NodeRules): NodeMove[] {
  const { host, drain } = node;
  const drained: NodeState = { ...node, host: { ...host, hasPods: false }, drain: 'drained' };
  if (drain === 'draining')
    return [{ label: 'its last pod is gone', fair: true, cost: 0, to: drained }];
  if (!podsReturn || host.hasPods || isClosed(node, contents)) return [];
  return [
    {
      label: 'pods run here again',
      fair: false,
      cost: 0,
      to: { ...node, host: { ...host, hasPods: true } },
    },
  ];
}

/** Leaves out cordoned nodes, because another cordon changes nothing. */
function cordonMoves(node: NodeState, { contents, isNode, othersCordon }: NodeRules): NodeMove[] {
  if (!isNode || !othersCordon || isClosed(node, contents)) return [];
  const object = objectAt(contents, node.versions) as Node;
  const closed = { ...object, spec: { ...object.spec, unschedulable: true } };
  const to = { ...written(node, contentOf(contents, closed)), keptClosed: true };
  return [{ label: 'somebody else cordons it', fair: false, cost: 1, to }];
}

/** A running Job succeeds or fails. Both moves are fair and cost no fault. */
function hookMoves(node: NodeState): NodeMove[] {
  return endsOf(node.hookJobs).map(({ when, state, jobs: hookJobs }) => {
    const label = `its Job ${when} has ${state}`;
    return { label, fair: true, cost: 0, to: { ...node, hookJobs } };
  });
}

/**
 * The kubelet or k0s writes the version of its process into its object. This may happen at any time after the service
 * is up.
 */
function versionMoves(
  node: NodeState,
  { contents, tellsVersion, qualityOf }: NodeRules,
): NodeMove[] {
  const { service } = node.host;
  if (!tellsVersion || service?.life !== 'up' || qualityOf(service.file) === 'impostor') return [];
  const object = objectAt(contents, node.versions);
  if (showsVersion(object, service.file)) return [];
  const to = written(node, contentOf(contents, tellingVersion(object, service.file)));
  return [{ label: `its object tells ${service.file}`, fair: true, cost: 0, to }];
}

function isClosed({ versions }: NodeState, contents: NodeRules['contents']): boolean {
  return (objectAt(contents, versions) as Node).spec?.unschedulable === true;
}

/** The statuses in which no agent works on the service. */
const ENDS: readonly (string | undefined)[] = [
  'UnCordoning',
  'Completed',
  'Failed',
  'FailedDownload',
];

/**
 * Returns one move to each state. If several moves lead to the same state, prefers a fair move with a low cost. Leaves
 * out moves that change nothing.
 */
function distinct(
  from: NodeState,
  moves: readonly NodeMove[],
  states: Numbering<NodeState>,
): NodeEdge[] {
  const byState = new Map<number, NodeEdge>();
  const here = states.numberOf(cleanedUp(from));
  for (const move of moves) {
    const to = states.numberOf(cleanedUp(move.to));
    const known = byState.get(to);
    if (to === here || (known && (known.fair || !move.fair) && known.cost <= move.cost)) continue;
    byState.set(to, { ...move, to });
  }
  return [...byState.values()];
}

/**
 * Removes details on which no decision depends: times, because each turn counts from its own start, and the numbers of
 * processes, because only their equality matters.
 */
function cleanedUp(node: NodeState): NodeState {
  const { journal: noted, host } = node;
  if (noted.phase === 'idle' || isStaged(noted))
    return { ...node, known: true, host: renumbered(host, []) };
  // The first time only matters for conditions with a time from a kubelet, the second one only for the Leases of the
  // components. The model has neither.
  const { restartedAt: _, upMs: _upMs, ...journal } = noted;
  const { process, fresh, work, since, entered } = journal;
  const old = [
    ...new Set(
      [work.original, ...(process ? [process] : []), ...(fresh ? [fresh] : [])].map(
        ({ pid }) => pid,
      ),
    ),
  ];
  const numberOf = (id: number): number => old.indexOf(id) + 1;
  const asProcess = (id: number) => processOf({ id: numberOf(id) });
  return {
    ...node,
    host: renumbered(host, old),
    journal: {
      ...journal,
      spent: {},
      ...(since === undefined ? {} : { since: NOW }),
      ...(entered ? { entered: { ...entered, at: NOW } } : {}),
      work: { ...work, original: asProcess(work.original.pid) },
      ...(process ? { process: asProcess(process.pid) } : {}),
      ...(fresh ? { fresh: asProcess(fresh.pid) } : {}),
    },
  };
}

/**
 * A service that the agent knows gets its index among the known services as its number. Any other service gets the next
 * number.
 */
function renumbered(host: Host, known: readonly number[]): Host {
  const { service } = host;
  if (!service) return host;
  const place = service.id === UNSEEN ? -1 : known.indexOf(service.id);
  return { ...host, service: { ...service, id: place < 0 ? known.length + 1 : place + 1 } };
}
