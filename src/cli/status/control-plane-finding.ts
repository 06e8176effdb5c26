/** Says for a read-only command whether the API servers are ready: the check of the leader counts, not that of the user's machine. */
import type { EndpointHealth } from '../../engine/model/decision.ts';
import { because } from '../../engine/model/reasons.ts';
import { blockedBy } from '../../engine/report/conditions.ts';
import type { Known } from '../../engine/snapshot/gather.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { listed } from '../../util/phrases.ts';
import { runnerOf } from '../plan-runners.ts';

/** Causes that are named of API servers that are not ready. */
const MOST_CAUSES = 2;

/** Returns what the leader wrote into the conditions of the plan, as it asks from another place; undefined if it found all API servers ready. */
export function leaderFinding(plan: KubeObject): Known['controlPlane'] {
  const message = blockedBy(plan, 'ControlPlaneNotReady');
  return message === undefined
    ? undefined
    : { unanswered: because('ControlPlaneNotReady', message), recheckMs: 0 };
}

/** Returns one sentence on the API servers that this machine finds not ready; undefined if there are none, or if the plan is carried out from this machine. */
export function doubtOf(dialect: string, health: readonly EndpointHealth[]): string | undefined {
  const down = health.filter(({ ready }) => !ready);
  if (down.length === 0 || runnerOf(dialect).runsHere) return undefined;
  const names = listed(down.map(({ name }) => name));
  const causes = new Set(down.map(({ detail }) => detail ?? 'not ready'));
  // Which addresses do not answer is of no use here, and it says nothing about the API servers.
  const isSilent = [...causes].every((cause) => cause.startsWith('no answer'));
  const found = isSilent
    ? `this machine gets no answer from the API server of ${names}`
    : `this machine finds the API server of ${names} not ready (${listed([...causes], MOST_CAUSES)})`;
  return `${found}; only the leader's check counts`;
}
