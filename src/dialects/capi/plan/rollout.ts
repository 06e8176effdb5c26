/** Turns a Node with an update request into a rollout of one target, and writes the record back. */
import { z } from 'zod';
import { machines } from '../../../api/capi/machine.ts';
import { labelSelectorSchema } from '../../../api/cattle/workload.ts';
import type { PodRule } from '../../../drain/pod-rules.ts';
import { REASONS, type ReasonCode } from '../../../engine/model/reasons.ts';
import {
  RECORDED_STATES,
  ROLLOUT_PHASES,
  type Rollout,
  type Stage,
} from '../../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import {
  annotated,
  apiVersionOf,
  type KubeObject,
  type Node,
  withoutAnnotations,
} from '../../../kube/resources.ts';
import { DOWNLOAD_CHECK_ANNOTATION, PREFETCH_ANNOTATION } from '../../../signal/names.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { parseJson } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';

/** The request: makes the Node a plan. Remove it to allow the same update again. */
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
  /** Unique for each request, so that records and signals of earlier requests do not count. */
  uid: z.string().min(1),
  /** `<namespace>/<name>`. */
  machine: z.string().min(1),
  /** As the Machine has it in `spec.version`. */
  version: z.string().min(1),
  role: z.enum(['controller', 'worker']),
  requested: z.iso.datetime(),
  /** `<os>-<architecture>` of the payload. */
  platform: z.string().min(1),
  url: z.string().min(1),
  sha256: z.string().exactOptional(),
  /** Of a kubeadm node; absent: k0s. */
  procedure: z.literal('kubeadmupdate').exactOptional(),
  /** As Cluster API's objects have them: which one is paused, and how long a drain may take; 0: as the policy says. */
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

/** Agents may already download for it. */
export function withoutUpdate<T extends KubeObject>(node: T): T {
  return withoutAnnotations(
    node,
    UPDATE_ANNOTATION,
    RECORD_ANNOTATION,
    PREFETCH_ANNOTATION,
    DOWNLOAD_CHECK_ANNOTATION,
  );
}

/** By a label of the pod, in usual spellings: Cluster API ignores case, and a hyphen. */
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

/** If an UpgradePolicy covers the Node, that says how long a drain may take. */
export function withRules(node: Node, policy: RolloutPolicy): RolloutPolicy {
  const { paused, drainSeconds = 0, podRules = [] } = updateOn(node)?.rules ?? {};
  const drain = {
    ...policy.drain,
    options: { ...policy.drain.options, podRules: [...LABEL_RULES, ...podRules] },
  };
  const ruled = { ...policy, ...(paused && { heldBy: paused }), drain };
  if (drainSeconds === 0 || policy.name !== undefined) return ruled;
  const stepDeadlines = { ...policy.stepDeadlines, drain: drainSeconds * 1000 };
  return { ...ruled, stepDeadlines, drain: { ...drain, onDeadline: 'proceed' } };
}

export function resolve(node: Node, now: number): Rollout {
  const update = requestOn(node);
  const fresh = { phase: 'new', blocked: false, state: 'pending', since: rfc3339(now) } as const;
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
  const record: UpdateRecord = { uid, phase, blocked, ...(reason ? { reason } : {}), state, since };
  return annotated(node, { [RECORD_ANNOTATION]: JSON.stringify(record) });
}

/** Each Machine is one rollout: Cluster API decides how many run at once. */
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
