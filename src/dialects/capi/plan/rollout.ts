/** Turns a Node with an update request into a rollout of one target, and writes the record back to the Node. */
import { z } from 'zod';
import { machines } from '../../../api/capi/machine.ts';
import { labelSelectorSchema } from '../../../api/cattle/workload.ts';
import type { PodRule } from '../../../drain/pod-rules.ts';
import { REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import {
  newTarget,
  RECORDED_STATES,
  ROLLOUT_PHASES,
  type Rollout,
  type Stage,
  type TurnTime,
} from '../../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { toRecord } from '../../../engine/reasons/recorded.ts';
import {
  annotated,
  apiVersionOf,
  type KubeObject,
  type Node,
  withoutAnnotations,
} from '../../../kube/resources.ts';
import { DOWNLOAD_CHECK_ANNOTATION, PREFETCH_ANNOTATION } from '../../../signal/names.ts';
import { parseJson } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';

/** The annotation with the request, which makes the Node a plan. Remove it to allow the same update again. */
export const UPDATE_ANNOTATION = 'upgrade.refit.dev/machine-update';
export const RECORD_ANNOTATION = 'upgrade.refit.dev/machine-update-record';

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
});

const recordSchema = z.object({
  uid: z.string().min(1),
  phase: z.enum(ROLLOUT_PHASES),
  blocked: z.boolean(),
  reason: z
    .object({ code: z.enum(Object.keys(REASONS) as ReasonCode[]), message: z.string() })
    .exactOptional(),
  state: z.enum(RECORDED_STATES),
  since: z.iso.datetime(),
});

export type MachineUpdate = z.infer<typeof updateSchema>;
export type UpdateRecord = z.infer<typeof recordSchema>;

export const updateOn = onceForEach(
  (node: KubeObject) =>
    updateSchema.safeParse(parseJson(node.metadata.annotations?.[UPDATE_ANNOTATION])).data,
);

export function recordOf(node: KubeObject, { uid }: MachineUpdate): UpdateRecord | undefined {
  const record = recordIn(node);
  return record?.uid === uid ? record : undefined;
}

const recordIn = onceForEach(
  (node: KubeObject) =>
    recordSchema.safeParse(parseJson(node.metadata.annotations?.[RECORD_ANNOTATION])).data,
);

export function withRequest<T extends KubeObject>(node: T, update: MachineUpdate): T {
  return annotated(node, { [UPDATE_ANNOTATION]: JSON.stringify(update) });
}

/** Returns the node without its request, its record, and the requests to download the payload in advance. */
export function withoutUpdate<T extends KubeObject>(node: T): T {
  return withoutAnnotations(
    node,
    UPDATE_ANNOTATION,
    RECORD_ANNOTATION,
    PREFETCH_ANNOTATION,
    DOWNLOAD_CHECK_ANNOTATION,
  );
}

/** The rules for pods with a drain label. Cluster API ignores case and hyphens in its value, so each usual spelling is listed. */
const LABEL_RULES = [
  labelled('leave', ['skip', 'Skip', 'SKIP']),
  labelled('wait', [
    'wait-completed',
    'Wait-Completed',
    'waitcompleted',
    'waitCompleted',
    'WaitCompleted',
  ]),
];

function labelled(action: PodRule['action'], values: string[]): PodRule {
  const matchExpressions = [{ key: 'cluster.x-k8s.io/drain', operator: 'In', values }];
  return { pods: [{ selector: { matchExpressions } }], action, turn: 0 };
}

/**
 * Returns the policy with the rules of the request. If an UpgradePolicy covers the Node, the drain timeout of the
 * UpgradePolicy replaces the drain timeout of the Machine.
 */
export function withRules(node: Node, policy: RolloutPolicy): RolloutPolicy {
  const { paused, drainSeconds = 0, podRules = [] } = updateOn(node)?.rules ?? {};
  const ofPolicy = policy.drain.options;
  const drain = {
    ...policy.drain,
    options: { ...ofPolicy, podRules: [...LABEL_RULES, ...podRules, ...(ofPolicy.podRules ?? [])] },
  };
  const ruled = { ...policy, ...(paused && { heldBy: paused }), drain };
  if (drainSeconds === 0 || policy.name !== undefined) return ruled;
  const stepDeadlines = { ...policy.stepDeadlines, drain: drainSeconds * 1000 };
  return { ...ruled, stepDeadlines, drain: { ...drain, onDeadline: 'proceed' } };
}

export function resolve(node: Node, now: TurnTime): Rollout {
  const update = requestOn(node);
  const { name } = node.metadata;
  const { state, since } = newTarget({ key: name, name }, now);
  const fresh = { phase: 'new', blocked: false, state, since } as const;
  return rolloutOf(node, update, recordOf(node, update) ?? fresh);
}

export function rolloutOf(
  node: Node,
  update: MachineUpdate,
  record: Omit<UpdateRecord, 'uid'>,
): Rollout {
  const { uid, machine, requested } = update;
  const { phase, blocked, reason } = record;
  return {
    source: {
      apiVersion: apiVersionOf(machines),
      kind: machines.kind,
      name: machine,
      uid,
      created: requested,
    },
    id: requested,
    phase,
    blocked,
    reason,
    stages: [stageOf(update, node.metadata.name, record)],
    problems: [],
  };
}

export function project({ phase, blocked, reason, stages }: Rollout, node: Node): Node {
  const target = stages[0]?.targets[0];
  if (!target) throw new Error(`the rollout of node ${node.metadata.name} has no target`);
  const { uid } = requestOn(node);
  const { state, since } = target;
  const known = reason ? { reason: toRecord(reason) } : {};
  const record: UpdateRecord = { uid, phase, blocked, ...known, state, since };
  return annotated(node, { [RECORD_ANNOTATION]: JSON.stringify(record) });
}

/** Returns the only stage of the rollout. Each Machine is a rollout of its own, and Cluster API decides how many run at once. */
function stageOf(
  update: MachineUpdate,
  name: string,
  { state, since }: Omit<UpdateRecord, 'uid'>,
): Stage {
  const { version, role, platform, url, sha256, procedure } = update;
  return {
    id: 'machine',
    command: 0,
    role,
    maxInFlight: 1,
    version,
    ...(procedure && { procedure }),
    payloads: { [platform]: { url, ...(sha256 === undefined ? {} : { sha256 }) } },
    forced: false,
    targets: [{ key: name, name, state, since }],
  };
}

function requestOn(node: Node): MachineUpdate {
  const update = updateOn(node);
  if (!update) throw new Error(`node ${node.metadata.name} has no update request`);
  return update;
}
