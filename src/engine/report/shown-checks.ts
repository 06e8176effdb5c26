/**
 * Converts results of health checks into the entries of a NodeRollout, and back. Commands read the results from the
 * NodeRollout, because only the leader performs the checks.
 */
import {
  LONGEST_MESSAGE,
  MOST,
  type NodeRollout,
  type NodeRolloutStatus,
} from '../../api/refit/node-rollout.ts';
import type { CheckResult, CheckState } from '../../health/checks.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';

export type ShownCheck = NonNullable<NodeRolloutStatus['checks']>[number];

/**
 * Milliseconds for which a message is kept while the check passes. Values change in each round, and each write costs the API server work.
 */
const KEPT_MS = 60_000;

const SHOWN = { passing: 'Passing', failing: 'Failing', unknown: 'Unknown' } as const;
const STATES: Readonly<Record<ShownCheck['state'], CheckState>> = {
  Passing: 'passing',
  Failing: 'failing',
  Unknown: 'unknown',
};

/** Returns the results as a NodeRollout shows them; undefined if there are none. */
export function checksShown(results: readonly CheckResult[] = []): ShownCheck[] | undefined {
  if (results.length === 0) return undefined;
  return results.slice(0, MOST.checks).map(({ name, state, message, since, at, nodes = [] }) => ({
    name,
    state: SHOWN[state],
    message: message.slice(0, LONGEST_MESSAGE),
    since: rfc3339(since),
    at: rfc3339(at),
    // If there are too many names, the entry lists no names, because a shortened list would suggest that the check
    // passes for the omitted Nodes.
    ...(nodes.length === 0 || nodes.length > MOST.checkNodes ? {} : { nodes: [...nodes] }),
  }));
}

/** Returns `next`, but keeps an entry of `before` if its check still passes and the entry is younger than `KEPT_MS`. */
export function steadyChecks(
  next: NodeRolloutStatus['checks'],
  before: NodeRolloutStatus['checks'] = [],
): NodeRolloutStatus['checks'] {
  return next?.map((check) => {
    const known = before.find(({ name }) => name === check.name);
    const isSame =
      check.state === 'Passing' && known?.state === check.state && known.since === check.since;
    const ageMs = Date.parse(check.at ?? '') - Date.parse(known?.at ?? '');
    return isSame && ageMs < KEPT_MS ? known : check;
  });
}

/** Returns the results that the leader has shown for this plan; undefined if it has shown none. */
export function resultsIn(
  shown: NodeRollout | undefined,
  planUid: string | undefined,
): readonly CheckResult[] | undefined {
  const { checks } = shown?.status ?? {};
  if (checks === undefined || shown?.spec.plan.uid !== planUid) return undefined;
  return checks.map(({ name, state, message = '', since = '', at = since, nodes }) => ({
    ...defined({ nodes }),
    name,
    state: STATES[state],
    message,
    since: Date.parse(since),
    at: Date.parse(at),
  }));
}
