/**
 * Finds out what an owner has done before, if none of its Nodes has a request any more: the Nodes of all chosen Machines
 * were deleted, or somebody removed their requests. The NodeRollout of the owner still knows its last run.
 */

import { hash } from 'node:crypto';
import { machineDeployments } from '../../../api/capi/machine.ts';
import { nodeRollouts } from '../../../api/kinds.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { placeOfSubject } from '../../../engine/contract/node-rollout-place.ts';
import { REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { OwnerReference } from '../../../kube/resources.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import { DAY_MS, rfc3339 } from '../../../util/clock.ts';
import type { DoneMachines, UpdateRecord } from './machine-update.ts';

/** The last run of an owner. */
export interface RememberedRun {
  /** The uid of its rollout. */
  readonly uid: string;
  readonly version: string | undefined;
  /** False if some Machines were not done. */
  readonly isDone: boolean;
  readonly before: DoneMachines | undefined;
  readonly failed: NonNullable<UpdateRecord['failed']>;
  /** Set if somebody paused or aborted the plan. */
  readonly stopped: 'paused' | 'aborted' | undefined;
}

/**
 * The milliseconds for which a run without any request is remembered. Cluster API asks for the next Machine within minutes. A
 * request that comes much later belongs to another upgrade.
 */
const REMEMBERED_MS = DAY_MS;

/** Returns the namespace and the subject of the NodeRollout of an owner. */
export function subjectOfOwner(
  namespace: string,
  { kind, name }: { readonly kind: string; readonly name: string },
): { namespace: string; name: string; kind: string | undefined } {
  // A control plane and a MachineDeployment may have the same name.
  return { namespace, name, kind: kind === machineDeployments.kind ? undefined : kind };
}

/**
 * Resolves with the last run of the owner; undefined if there is none, or if the cluster has no NodeRollouts. `now` is in
 * milliseconds.
 */
export async function rememberedRun(
  management: KubeClient,
  namespace: string,
  owner: Pick<OwnerReference, 'kind' | 'name' | 'uid'>,
  now: number,
  abort: AbortSignal,
): Promise<RememberedRun | undefined> {
  const { name } = placeOfSubject('capi', namespace, subjectOfOwner(namespace, owner));
  const reading = management.get(nodeRollouts, name, { namespace, abort });
  const { history = [], planDeleted } = (await ifAllowed(ifFound(reading)))?.status ?? {};
  const [run] = history;
  const isOld = planDeleted !== undefined && !(now - Date.parse(planDeleted) < REMEMBERED_MS);
  return run && !isOld && isOfOwner(run, owner, history) ? remembered(run, now) : undefined;
}

/** Returns true if the run is one of this owner, and not of an earlier one with the same name. */
function isOfOwner(
  { planUid, version = '' }: NodeRolloutRun,
  { uid }: Pick<OwnerReference, 'uid'>,
  history: readonly NodeRolloutRun[],
): boolean {
  const earlier = [undefined, ...history.map((each) => each.planUid)];
  return earlier.some((before) => rolloutUid(uid, version, before) === planUid);
}

/** Returns the uid of the rollout of an owner to this version that comes after the rollout with the uid `earlier`. */
export function rolloutUid(owner: string, version: string, earlier: string | undefined): string {
  const digits = hash('sha256', [owner, version, earlier ?? ''].join(' '));
  // The parts of a UUID end here.
  const ends = [8, 12, 16, 20, 32];
  return ends.map((end, index) => digits.slice(ends[index - 1] ?? 0, end)).join('-');
}

function stoppedBy({ paused, reason }: NodeRolloutRun): RememberedRun['stopped'] {
  if (reason === 'Aborted') return 'aborted';
  return paused === true ? 'paused' : undefined;
}

function remembered(run: NodeRolloutRun, now: number): RememberedRun | undefined {
  const { planUid, version, phase, counts, ended = rfc3339(now), failures = [] } = run;
  if (planUid === undefined) return undefined;
  return {
    uid: planUid,
    version,
    isDone: phase === 'done',
    stopped: stoppedBy(run),
    before: counts.done > 0 ? { done: counts.done, lastEnd: ended } : undefined,
    failed: failures.map(({ node, reason = '', message = reason }) => ({
      name: node,
      since: ended,
      failure: {
        code: Object.hasOwn(REASONS, reason) ? (reason as ReasonCode) : 'TargetFailed',
        message,
      },
    })),
  };
}
