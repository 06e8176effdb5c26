/** Reads in a NodeRollout whether alerts about the plan are silenced. Commands read it there, because only the leader knows this. */
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { SilenceState } from '../../silences/keeper.ts';
import { defined } from '../../util/json.ts';
import type { ShownSilence } from './shown-silences.ts';

/** What the leader has shown last about the silences of a plan. */
export interface ShownSilencing extends SilenceState {
  /** Since when `isGood` has its value, in RFC 3339. */
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
