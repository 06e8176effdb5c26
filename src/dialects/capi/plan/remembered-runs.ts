/**
 * Finds out what an owner has done before, if none of its Nodes has a request any more: the Nodes of all chosen Machines
 * were deleted, or somebody removed their requests. The NodeRollout of the owner still knows its last run.
 */
import { machineDeployments } from '../../../api/capi/machine.ts';
import { nodeRollouts } from '../../../api/kinds.ts';
import type { NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import { placeOf } from '../../../engine/contract/node-rollout-place.ts';
import { REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import { rfc3339 } from '../../../util/clock.ts';
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
}

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
  owner: { readonly kind: string; readonly name: string },
  now: number,
  abort: AbortSignal,
): Promise<RememberedRun | undefined> {
  const subject = subjectOfOwner(namespace, owner);
  const place = placeOf({ name: 'capi', nodeRollouts: { subjectOf: () => subject } }, NO_PLAN);
  if (place === undefined) return undefined;
  const reading = management.get(nodeRollouts, place.name, { namespace, abort });
  const [run] = (await ifAllowed(ifFound(reading)))?.status?.history ?? [];
  return run && remembered(run, now);
}

const NO_PLAN = { metadata: { name: '' } };

function remembered(run: NodeRolloutRun, now: number): RememberedRun | undefined {
  const { planUid, version, phase, counts, ended = rfc3339(now), failures = [] } = run;
  if (planUid === undefined) return undefined;
  return {
    uid: planUid,
    version,
    isDone: phase === 'done',
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
