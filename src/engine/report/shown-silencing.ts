/**
 * Reads from a NodeRollout whether alerts about the plan are silenced. Commands need the NodeRollout for this, because
 * only the leader knows the state of the silences.
 */
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { SilenceState } from '../../silences/keeper.ts';
import { defined } from '../../util/json.ts';
import type { ShownSilence } from './shown-silences.ts';

/** The state of the silences of a plan, as the leader published it last. */
export interface ShownSilencing extends SilenceState {
  /** The time at which `isGood` got its present value, in RFC 3339. */
  readonly since?: string | undefined;
  /** The silences for the nodes in progress; undefined if the leader has shown none. */
  readonly silences?: readonly ShownSilence[] | undefined;
}

/** Returns what the leader has shown for this plan; undefined if it has shown nothing. */
export function silencingIn(
  shown: NodeRollout | undefined,
  planUid: string | undefined,
): ShownSilencing | undefined {
  if (shown?.spec.plan.uid !== planUid) return undefined;
  const condition = shown?.status?.conditions?.find(({ type }) => type === 'Silenced');
  if (condition === undefined) return undefined;
  const { status, message = '', lastTransitionTime } = condition;
  const silences = defined({ silences: shown?.status?.silences });
  return { isGood: status === 'True', message, since: lastTransitionTime, ...silences };
}
