/**
 * Finds the owner of a Machine, and the rollout of that owner to which an update belongs. All Machines of one owner are
 * one plan.
 */
import {
  CLUSTER_NAME,
  CONTROL_PLANE_GROUP,
  CONTROL_PLANE_LABEL,
  type Machine,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../api/capi/machine.ts';
import type { KubeClient } from '../../../kube/client.ts';
import {
  apiVersionOf,
  type Node,
  type OwnerReference,
  withoutAnnotations,
} from '../../../kube/resources.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { isOver } from '../../../signal/at-work.ts';
import {
  AGENT_POLICY_ANNOTATION,
  REPORT_ANNOTATION,
  ROLLOUT_ANNOTATION,
  SIGNAL_DATA_ANNOTATION,
  SIGNAL_VERSION_ANNOTATION,
} from '../../../signal/names.ts';
import type { Clock } from '../../../util/clock.ts';
import { originOf } from '../../shared/signal-owner.ts';
import { doneAmong, groupOf, newestOf, rolloutUidOf } from './machine-groups.ts';
import {
  type DoneMachines,
  type MachineUpdate,
  recordOf,
  type UpdateRecord,
  withRecord,
  withRequest,
} from './machine-update.ts';
import {
  isStoppedBefore,
  withControlsOf,
  withoutOwnControls,
  withPauseOf,
} from './owner-controls.ts';
import { type RememberedRun, rememberedRun, rolloutUid } from './remembered-runs.ts';

/** A MachineDeployment or a control plane. */
export type MachineOwner = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name' | 'uid'>;

/** Which Machines are one plan: all Machines of an owner, or each Machine alone. */
export type Rollouts = 'owner' | 'machine';

export interface MachineOwners {
  /** Returns the owner of the Machine; undefined if the Machine is a plan of its own. */
  readonly of: (machine: Machine, abort: AbortSignal) => Promise<MachineOwner | undefined>;
  /**
   * Returns the names of the Nodes whose Machines have the same owner as this Machine, and not this version. Cluster API
   * has not chosen them yet.
   */
  readonly nodesOf: (
    machine: Machine,
    owner: MachineOwner,
    version: string,
    abort: AbortSignal,
  ) => Promise<readonly string[]>;
  /** Returns the last run of the owner of the Machine, if its NodeRollout knows one. */
  readonly lastRunOf: (
    machine: Machine,
    owner: MachineOwner,
    abort: AbortSignal,
  ) => Promise<RememberedRun | undefined>;
}

export function machineOwners(
  management: KubeClient,
  rollouts: Rollouts,
  clock: Pick<Clock, 'now'>,
): MachineOwners {
  return {
    of: async ({ metadata }, abort) => {
      if (rollouts === 'machine') return undefined;
      const { namespace, labels, ownerReferences = [] } = metadata;
      const direct = ownerReferences.find(({ controller }) => controller === true);
      if (direct?.apiVersion.startsWith(`${CONTROL_PLANE_GROUP}/`) === true) {
        const { apiVersion, kind, name, uid } = direct;
        return { apiVersion, kind, name, uid };
      }
      const name = labels?.[SET_LABELS.deployment];
      // A MachineSet without a MachineDeployment is never updated in place.
      if (direct?.kind !== 'MachineSet' || name === undefined) return undefined;
      const found = await ifFound(management.get(machineDeployments, name, { namespace, abort }));
      const { uid } = found?.metadata ?? {};
      if (uid === undefined) return undefined;
      const { kind } = machineDeployments;
      return { apiVersion: apiVersionOf(machineDeployments), kind, name, uid };
    },

    nodesOf: async ({ metadata, spec }, { kind, name, uid }, version, abort) => {
      const { namespace } = metadata;
      const labelSelector =
        kind === machineDeployments.kind
          ? `${SET_LABELS.deployment}=${name}`
          : `${CLUSTER_NAME}=${spec?.clusterName},${CONTROL_PLANE_LABEL}`;
      const { items } = await management.listAll(machines, { namespace, labelSelector, abort });
      const isOwn = ({ metadata: { ownerReferences = [] } }: Machine): boolean =>
        kind === machineDeployments.kind || ownerReferences.some((each) => each.uid === uid);
      const left = items.filter((each) => isOwn(each) && each.spec?.version !== version);
      return left.flatMap(({ status }) => status?.nodeRef?.name ?? []);
    },

    lastRunOf: async ({ metadata: { namespace = 'default' } }, owner, abort) =>
      await rememberedRun(management, namespace, owner, clock.now(), abort),
  };
}

/** The plan of an owner that a new request joins or begins. */
export interface OwnedRollout {
  /** The uid of the rollout. */
  readonly uid: string;
  /** True if no Machine of the owner is in this rollout yet. */
  readonly isNew: boolean;
  /** The Node that represents the plan, or else the earlier plan of the owner; undefined if there is none. */
  readonly represented: Node | undefined;
  /** The Machines of the rollout that are done; undefined if there are none. */
  readonly before?: DoneMachines | undefined;
  /** True if an earlier plan of the owner was paused or aborted, and no Node represents it any more. */
  readonly isStopped?: boolean;
  /** The Machines of a rollout without requests that failed. Their failures count until somebody retries them. */
  readonly failed?: UpdateRecord['failed'];
}

/** Resolves with the rollout of the owner of this Machine to this version. `all` are the Nodes of the cluster. */
export async function findRollout(
  owners: MachineOwners,
  all: readonly Node[],
  machine: Machine,
  owner: MachineOwner,
  version: string,
  abort: AbortSignal,
): Promise<OwnedRollout> {
  const known = newestOf(all, owner.uid);
  const run = known ? undefined : await owners.lastRunOf(machine, owner, abort);
  return rolloutFor(all, owner, version, run);
}

/**
 * Returns the rollout of the owner to this version. Each replica computes the same uid for a new rollout, because several
 * Machines may be chosen at once. `run` is the last run of an owner whose Nodes have no requests.
 */
export function rolloutFor(
  all: readonly Node[],
  { uid }: MachineOwner,
  version: string,
  run?: RememberedRun,
): OwnedRollout {
  const chosen = newestOf(all, uid) ?? [];
  const [newest] = chosen;
  const represented = newest?.node;
  if (newest?.update.version === version) {
    const before = doneAmong(chosen);
    return { uid: rolloutUidOf(newest.update), isNew: false, represented, before };
  }
  const goesOn = newest === undefined && run?.version === version && !run.isDone;
  // An abort ends one rollout, and a pause lasts until `refit resume`.
  const isOfRun = run?.stopped === 'paused' || (goesOn && run.stopped === 'aborted');
  const isStopped = newest === undefined && (isOfRun || isStoppedBefore(all, { uid }));
  if (goesOn) {
    const { before, failed } = run;
    return { uid: run.uid, isNew: true, represented, isStopped, before, failed };
  }
  const earlier = newest ? rolloutUidOf(newest.update) : run?.uid;
  const fresh = rolloutUid(uid, version, earlier);
  return { uid: fresh, isNew: true, represented, isStopped };
}

/**
 * The most names of Nodes in a request of a rollout that has begun already. The first request has all names, but the
 * annotations of a Node have little room.
 */
const MOST_NAMES = 500;

/**
 * Returns the part of the request that names the owner. `left` are the names of the Nodes that are not done.
 */
export function ownerIn(
  owner: MachineOwner,
  { uid, isNew, before }: Pick<OwnedRollout, 'uid' | 'isNew' | 'before'>,
  left: readonly string[],
): NonNullable<MachineUpdate['owner']> {
  const isListed = isNew || left.length <= MOST_NAMES;
  return {
    ...owner,
    rollout: uid,
    ...(isListed && { nodes: [...left] }),
    ...(before && { before }),
  };
}

/**
 * Returns the names of the Nodes that are not done in a rollout that has begun already; undefined for a new rollout. Those
 * that Cluster API has chosen belong to them, because a person may remove their requests.
 */
export function leftIn(
  all: readonly Node[],
  { isNew, represented }: Pick<OwnedRollout, 'isNew' | 'represented'>,
): string[] | undefined {
  if (isNew || represented === undefined) return undefined;
  const { chosen = [], unchosen = [] } = groupOf(all, represented) ?? {};
  const open = chosen.filter(({ node, update }) => recordOf(node, update)?.state !== 'done');
  return [...open.map(({ node }) => node), ...unchosen].map(({ metadata }) => metadata.name);
}

/**
 * Returns the Node with a request that names the owner of its Machine. `left` are the names of the Nodes that are not done.
 */
export function withOwnedRequest(
  node: Node,
  update: MachineUpdate,
  owner: MachineOwner,
  rollout: OwnedRollout,
  left: readonly string[],
): Node {
  const { isNew, represented, isStopped = false, failed = [] } = rollout;
  const owned = { ...update, owner: ownerIn(owner, rollout, left) };
  const ready = withoutEndedSignal(node, rollout);
  if (represented === undefined) {
    const requested = withRequest(withoutOwnControls(ready, owner, isStopped), owned);
    return failed.length === 0
      ? requested
      : withRecord(requested, owned, recordWith(owned, failed));
  }
  return withRequest((isNew ? withPauseOf : withControlsOf)(ready, represented, owner), owned);
}

/** Returns the record of a Machine that has not begun, and whose rollout has failed Machines. */
function recordWith(
  { uid, requested }: MachineUpdate,
  failed: NonNullable<UpdateRecord['failed']>,
): UpdateRecord {
  return { uid, phase: 'running', blocked: false, state: 'pending', since: requested, failed };
}

/**
 * Returns the Node without a signal of this rollout that has ended. Such a signal is left if somebody removed the request of
 * a Machine, and its result must not count for the next request.
 */
function withoutEndedSignal(node: Node, { uid }: Pick<OwnedRollout, 'uid'>): Node {
  const signal = decodeSignal(node.metadata.annotations);
  if (signal === undefined || !isOver(signal) || originOf(node, signal)?.uid !== uid) return node;
  return withoutAnnotations(
    node,
    SIGNAL_DATA_ANNOTATION,
    SIGNAL_VERSION_ANNOTATION,
    ROLLOUT_ANNOTATION,
    REPORT_ANNOTATION,
    AGENT_POLICY_ANNOTATION,
  );
}
