/**
 * Finds out for a read-only command whether the API servers are ready. The result of the leader's check is used, not
 * the result of a check from the user's machine.
 */
import { answered, type Unanswered, unanswered } from '../../engine/model/asked.ts';
import { because } from '../../engine/model/reasons.ts';
import type { EndpointHealth } from '../../engine/model/snapshot.ts';
import { blockedBy } from '../../engine/report/conditions.ts';
import type { Known } from '../../engine/snapshot/gather.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { listed } from '../../util/phrases.ts';

/** The maximum number of causes in a sentence about API servers. */
const MOST_CAUSES = 2;

/**
 * Returns the leader's result about the API servers, from the conditions of the plan; undefined if the leader found
 * that all of them are ready. The leader's result is used, because the leader is at another place in the network.
 */
export function leaderFinding(plan: KubeObject): Unanswered | undefined {
  const message = blockedBy(plan, 'ControlPlaneNotReady');
  return message === undefined
    ? undefined
    : unanswered({ reason: because('ControlPlaneNotReady', message), recheckMs: 0 });
}

/**
 * Returns what the leader found about the controller manager and the scheduler; undefined if they work, or if the leader
 * does not look at them. A command does not watch their Leases.
 */
export function componentsFinding(plan: KubeObject): Known['components'] {
  const told = blockedBy(plan, 'ComponentNotWorking');
  return told === undefined ? undefined : answered({ told });
}

/**
 * Returns one sentence about the API servers that are not ready when this machine asks them. Returns undefined if all
 * are ready.
 */
export function doubtOf(health: readonly EndpointHealth[]): string | undefined {
  const down = health.filter(({ ready }) => !ready);
  if (down.length === 0) return undefined;
  const names = listed(down.map(({ name }) => name));
  const causes = new Set(down.map(({ detail }) => detail ?? 'not ready'));
  // If none of these API servers answered, the sentence contains no causes, because this machine may have no route to
  // the API servers.
  const isSilent = down.every((health) => health.isSilent);
  const found = isSilent
    ? `this machine gets no answer from the API server of ${names}`
    : `this machine finds the API server of ${names} not ready (${listed([...causes], MOST_CAUSES)})`;
  return `${found}; only the leader's check counts`;
}
