/**
 * The moves of k0s's own agent on a node on which our agent runs as well. It runs inside the service, and waits for no
 * permission.
 */
import type { ServiceFacts } from '../../src/agent/service/host.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../src/signal/annotations.ts';
import type { SignalStatus } from '../../src/signal/names.ts';
import type { Configuration } from './cluster.ts';
import type { File, Host, Qualities } from './host.ts';
import type { NodeMove } from './node-moves.ts';
import { contentOf, type NodeState, objectAt, written } from './node-state.ts';
import type { NodeRules } from './turn-trail.ts';

/**
 * Returns what the process of this file reports about k0s's own agent, in the form in which
 * src/agent/service/worker-profile.ts finds it out.
 */
export function ownAgentFacts(
  file: File,
  ownAgent: Configuration['ownAgent'],
  isLast: NodeRules['isLast'],
): Pick<ServiceFacts, 'ownAgent' | 'ownAgentDoubt'> {
  switch (ownAgent) {
    case 'unknown':
      return {};
    case 'in doubt':
      return { ownAgentDoubt: 'its worker profile cannot be read' };
    case 'on':
      return { ownAgent: true };
    case 'on after the restart':
      return { ownAgent: isLast(file) };
  }
}

/**
 * Returns the moves of k0s's own agent, which behaves as in test/support/doubles/agent. It suffers no crashes or lost
 * writes here, because only our agent is examined.
 */
export function theirMoves(node: NodeState, rules: NodeRules): NodeMove[] {
  const { host } = node;
  const object = objectAt(rules.contents, node.versions);
  const signal = decodeSignal(object.metadata.annotations);
  if (rules.theirs === 'off' || signal === undefined || host.service?.life !== 'up') return [];
  const { ownAgent } = ownAgentFacts(host.service.file, rules.ownAgent, rules.isLast);
  if (ownAgent === false) return [];
  const to = nextOf(signal, host, rules.qualityOf);
  if (to === undefined) return [];
  const { status, host: after } = to;
  const moved = { ...node, host: after };
  if (status === undefined) {
    const to = { ...moved, isChanged: false };
    return node.isChanged
      ? [{ label: "k0s's agent restarts the service", fair: true, cost: 0, to }]
      : [];
  }
  const { metadata } = object;
  const data = encodeSignal({ ...signal, status: { status, timestamp: signal.created } });
  const changed = {
    ...object,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...data } },
  };
  const label = `k0s's agent reports ${status}`;
  return [{ label, fair: true, cost: 0, to: written(moved, contentOf(rules.contents, changed)) }];
}

interface Next {
  /** Undefined if the agent only ends the service. */
  readonly status?: SignalStatus;
  readonly host: Host;
}

function nextOf(
  { status, command: { version } }: SignalData,
  host: Host,
  qualityOf: Qualities,
): Next | undefined {
  const { service } = host;
  // Reports whether the service runs the version, according to the version that the service itself reports.
  const runsIt = service?.file === version && qualityOf(version) !== 'impostor';
  switch (status?.status) {
    case undefined:
      return { status: runsIt ? 'Completed' : 'Downloading', host };
    case 'Downloading':
      return { status: 'Cordoning', host };
    case 'ApplyingUpdate':
      return { status: 'Restart', host: { ...host, target: version } };
    case 'Restart':
      if (runsIt) return { status: 'UnCordoning', host };
      return service === undefined
        ? undefined
        : { host: { ...host, service: { ...service, life: 'stopping' } } };
    default:
      return undefined;
  }
}
