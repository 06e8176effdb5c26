/** The phases of a node during an upgrade. In each of these phases a person may turn the plan back. */
import { REPORTED_STATUSES } from '../../src/signal/names.ts';
import type { Configuration } from './cluster.ts';
import type { Glance, NodeGlance } from './glance.ts';

/**
 * pending: the plan has not recorded the node · intended: the node is recorded, but no signal is sent · asked: the
 * write of the signal is sent, but the API server has not accepted it yet · signalled: the signal is written, and the
 * agent has not answered · restoring: the agent restores the old file, and has not reported this · all other phases are
 * the statuses that an agent reports.
 */
export const FORWARD_PHASES = [
  'pending',
  'intended',
  'asked',
  'signalled',
  'restoring',
  ...REPORTED_STATUSES,
] as const;

export type ForwardPhase = (typeof FORWARD_PHASES)[number];

/**
 * The moment at which a person acts. The person replaces the plan with its roll-back plan, or aborts it and rolls it
 * back after it has ended.
 */
export interface TurningPoint {
  readonly node: string;
  readonly phase: ForwardPhase;
  readonly by: 'replacement' | 'abort';
}

/**
 * Returns true if the node is in this phase of the first plan. `asked` contains the nodes to which a write is sent but
 * not yet accepted.
 */
export function isAtTurningPoint(
  { turnsBack }: Configuration,
  glance: Glance,
  asked: ReadonlySet<string>,
): boolean {
  const node = glance.nodes.find(({ spec }) => spec.name === turnsBack?.node);
  return node !== undefined && phaseOf(node, glance, asked) === turnsBack?.phase;
}

function phaseOf(node: NodeGlance, { run, recorded }: Glance, asked: ReadonlySet<string>): string {
  const { name } = node.spec;
  if (node.signal?.planId === run) {
    const { phase } = node.journal;
    const isRestoring = phase.endsWith('Back') && node.signal.status?.status === 'Restart';
    return isRestoring ? 'restoring' : (node.signal.status?.status ?? 'signalled');
  }
  if (asked.has(name)) return 'asked';
  const { state = 'SignalPending' } = recorded.find((each) => each.name === name) ?? {};
  return state === 'SignalPending' ? 'pending' : 'intended';
}
