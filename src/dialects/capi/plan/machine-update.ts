/**
 * The request to update a Machine, and the record of its update. Both are annotations on the Node of the Machine. The
 * request makes the Node a plan, or a part of one.
 */
import { z } from 'zod';
import { labelSelectorSchema } from '../../../api/cattle/workload.ts';
import { REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import { RECORDED_STATES, ROLLOUT_PHASES } from '../../../engine/model/rollout.ts';
import { annotated, type KubeObject, withoutAnnotations } from '../../../kube/resources.ts';
import { DOWNLOAD_CHECK_ANNOTATION, PREFETCH_ANNOTATION } from '../../../signal/names.ts';
import { parseJson } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';
import { digestOf, sealOn, UPDATE_SEAL, withSeal } from './seals.ts';

/** The annotation with the request, which makes the Node a plan. Remove it to allow the same update again. */
export const UPDATE_ANNOTATION = 'upgrade.refit.dev/machine-update';
export const RECORD_ANNOTATION = 'upgrade.refit.dev/machine-update-record';
const SEALED = [UPDATE_ANNOTATION, RECORD_ANNOTATION];

const podRuleSchema = z.object({
  pods: z.array(
    z.object({
      selector: labelSelectorSchema.exactOptional(),
      namespaceSelector: labelSelectorSchema.exactOptional(),
    }),
  ),
  action: z.enum(['evict', 'leave', 'wait']),
  turn: z.int(),
});

/**
 * How many Machines of a rollout were done at some time, and when the last of them was done. They keep their places in the
 * waves, also if they are deleted.
 */
const doneSchema = z.object({ done: z.int().min(1), lastEnd: z.iso.datetime() });

const updateSchema = z.object({
  /** The uid is unique for each request, so that records and signals of earlier requests are ignored. */
  uid: z.string().min(1),
  /** The key of the Machine, `<namespace>/<name>`. */
  machine: z.string().min(1),
  /** The version in `spec.version` of the Machine. */
  version: z.string().min(1),
  role: z.enum(['controller', 'worker']),
  requested: z.iso.datetime(),
  /** The platform of the payload, `<os>-<architecture>`. */
  platform: z.string().min(1),
  url: z.string().min(1),
  sha256: z.string().exactOptional(),
  /** The procedure for a node of kubeadm. It is absent for k0s. */
  procedure: z.literal('kubeadmupdate').exactOptional(),
  /**
   * The rules from Cluster API's objects: which object pauses the update, and how long a drain may take. A time of 0
   * means that the policy decides.
   */
  rules: z
    .object({
      paused: z.string().exactOptional(),
      drainSeconds: z.int().min(0),
      podRules: z.array(podRuleSchema).exactOptional(),
    })
    .exactOptional(),
  /**
   * The MachineDeployment or the control plane that owns the Machine. All Machines of the owner are one plan. Without an
   * owner, the Machine is a plan of its own.
   */
  owner: z
    .object({
      apiVersion: z.string().min(1),
      kind: z.string().min(1),
      name: z.string().min(1),
      uid: z.string().min(1),
      /** The uid of the rollout. All Machines that the owner takes to the same version have the same one. */
      rollout: z.string().min(1),
      /**
       * The names of the Nodes of the owner that were not done before this request. If they are many, only the first
       * request of a rollout has them.
       */
      nodes: z.array(z.string()).exactOptional(),
      /** The Machines of the rollout that were done before this request; absent if there were none. */
      before: doneSchema.exactOptional(),
    })
    .exactOptional(),
});

const reasonSchema = z.object({
  code: z.enum(Object.keys(REASONS) as ReasonCode[]),
  message: z.string(),
});

const recordSchema = z.object({
  uid: z.string().min(1),
  /** The phase of the plan. The other fields of the plan, `blocked` and `reason`, are on the first Node of the plan. */
  phase: z.enum(ROLLOUT_PHASES),
  blocked: z.boolean(),
  reason: reasonSchema.exactOptional(),
  /** The state of the Machine. */
  state: z.enum(RECORDED_STATES),
  since: z.iso.datetime(),
  /** Why the Machine failed, if it is part of a plan with several Machines. */
  failure: reasonSchema.exactOptional(),
  /**
   * The Machines in progress, with the uids of their requests. Only the Node that represents the plan holds them. A start
   * changes this list, so of two leaders with the same view, the API server accepts the start of only one.
   */
  intended: z
    .array(z.object({ name: z.string(), uid: z.string(), since: z.iso.datetime() }))
    .exactOptional(),
  /**
   * The Machines of the plan that are done, as the Node that represents the plan, the one that represents it next, and that
   * of the next Machine know them.
   */
  before: doneSchema.exactOptional(),
  /**
   * The Machines of the plan that have failed. Several Nodes hold this list, because a failure counts for the plan even
   * if somebody deletes the failed Machine together with its Node.
   */
  failed: z
    .array(
      z.object({
        name: z.string(),
        since: z.iso.datetime(),
        failure: reasonSchema.exactOptional(),
      }),
    )
    .exactOptional(),
});

export type MachineUpdate = z.infer<typeof updateSchema>;
export type UpdateRecord = z.infer<typeof recordSchema>;
export type DoneMachines = z.infer<typeof doneSchema>;

/**
 * Returns the request on the Node; undefined if there is none. A request that makes the Node a part of the plan of an owner
 * counts only with its seal, because such a plan decides about other Nodes, too.
 */
export const updateOn = onceForEach((node: KubeObject): MachineUpdate | undefined => {
  const text = node.metadata.annotations?.[UPDATE_ANNOTATION];
  const update = updateSchema.safeParse(parseJson(text)).data;
  if (update?.owner === undefined) return update;
  return sealOn(node, UPDATE_SEAL) === digestOf(node, SEALED) ? update : undefined;
});

export function recordOf(node: KubeObject, { uid }: MachineUpdate): UpdateRecord | undefined {
  const record = recordIn(node);
  return record?.uid === uid ? record : undefined;
}

const recordIn = onceForEach(
  (node: KubeObject) =>
    recordSchema.safeParse(parseJson(node.metadata.annotations?.[RECORD_ANNOTATION])).data,
);

export function withRequest<T extends KubeObject>(node: T, update: MachineUpdate): T {
  return sealedFor(update, annotated(node, { [UPDATE_ANNOTATION]: JSON.stringify(update) }));
}

/** Returns the Node with the record of the update that its request names. */
export function withRecord<T extends KubeObject>(
  node: T,
  update: MachineUpdate,
  record: UpdateRecord,
): T {
  return sealedFor(update, annotated(node, { [RECORD_ANNOTATION]: JSON.stringify(record) }));
}

function sealedFor<T extends KubeObject>({ owner }: MachineUpdate, node: T): T {
  return withSeal(node, UPDATE_SEAL, owner === undefined ? undefined : digestOf(node, SEALED));
}

/** Returns the node without its request, its record, and the requests to download the payload in advance. */
export function withoutUpdate<T extends KubeObject>(node: T): T {
  const freed = withoutAnnotations(
    node,
    UPDATE_ANNOTATION,
    RECORD_ANNOTATION,
    PREFETCH_ANNOTATION,
    DOWNLOAD_CHECK_ANNOTATION,
  );
  return withSeal(freed, UPDATE_SEAL, undefined);
}
