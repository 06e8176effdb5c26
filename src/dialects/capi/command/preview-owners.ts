/**
 * Previews for each owner what applies once Cluster API wants to update its Machines in place: the policy, the waves, and
 * what the hooks wait for before anything is marked. Writes nothing.
 */
import { type Machine, machineDeployments } from '../../../api/capi/machine.ts';
import type { UpgradePolicy } from '../../../api/refit/upgrade-policy.ts';
import { answered } from '../../../engine/model/asked.ts';
import { policyOfPlan } from '../../../engine/policy/choose-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { wavesOf } from '../../../engine/schedule/waves.ts';
import { gather, platformOf } from '../../../engine/snapshot/gather.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import type { Clock } from '../../../util/clock.ts';
import { formatDuration } from '../../../util/duration.ts';
import { messageOf } from '../../../util/errors.ts';
import { counted } from '../../../util/phrases.ts';
import { capi } from '../plan/capi-dialect.ts';
import { type MachineOwner, type MachineOwners, ownerIn } from '../plan/machine-owners.ts';
import type { RulesOf } from '../plan/machine-rules.ts';
import { withRequest } from '../plan/machine-update.ts';
import { type AskedUpdate, type OwnerWait, ownerWaits } from '../plan/owner-waits.ts';
import { type NodeCluster, worldOf } from '../plan/progress.ts';

/** Machines that are updated before those of the next wave. */
export interface PreviewedWave {
  readonly machines: number;
  /** True if no Machine of the wave starts before somebody has approved the wave. */
  readonly approval?: true;
  /** How many milliseconds after the end of this wave the next one may start. */
  readonly settleMs?: number;
}

export interface PreviewedOwner {
  /** The kind and the name of the owner, such as `MachineDeployment prod/workers`. */
  readonly owner: string;
  readonly kind: string;
  /** The name of the UpgradePolicy; undefined if none applies. */
  readonly policy: string | undefined;
  /** The rules of the policy for times, in words; undefined if updates may start at any time. */
  readonly times: string | undefined;
  readonly waves: readonly PreviewedWave[];
  /** What the hooks wait for now, so that nothing is marked; undefined if they do not wait. */
  readonly waits: string | undefined;
  /** `maxUnavailable` of the MachineDeployment; undefined for a control plane. */
  readonly maxUnavailable: number | string | undefined;
}

interface Parts {
  readonly management: KubeClient;
  readonly workload: KubeClient;
  readonly owners: MachineOwners;
  readonly policies: readonly UpgradePolicy[];
  readonly rulesOf: RulesOf;
  readonly clock: Clock;
}

export interface OwnerPreviews {
  /** Notes what applies to the owner of the Machines. Never waits, so that the preview says whether the update is in place. */
  readonly note: OwnerWait;
  /** Returns what was noted about the owner of the Machine; undefined if nothing was. */
  readonly of: (machine: Machine) => PreviewedOwner | undefined;
  /** Returns what was noted about each owner, in the order of the questions. */
  readonly all: () => readonly PreviewedOwner[];
  /** Returns sentences about owners that could not be previewed. */
  readonly unseen: () => readonly string[];
}

export function ownerPreviews(parts: Parts): OwnerPreviews {
  const cluster: NodeCluster = {
    workload: parts.workload,
    seenNode: () => undefined,
    seenNodes: () => [],
    policyFor: (node) => policyOfPlan(capi, parts.policies, node),
    whyIdle: () => undefined,
    askApiServers: async () => await Promise.resolve([]),
  };
  const waitFor = ownerWaits({ ...parts, clusterOf: () => cluster });
  const found = new Map<string, PreviewedOwner>();
  const ofMachine = new Map<string, string>();
  const unseen = new Set<string>();
  return {
    note: async (asked, abort) => {
      const [first] = asked;
      if (first === undefined) return undefined;
      try {
        const owner = await parts.owners.of(first.machine, abort);
        if (owner === undefined) return undefined;
        for (const { machine } of asked) ofMachine.set(machine.metadata.name, owner.uid);
        const waits = await waitFor(asked, abort);
        const known = found.get(owner.uid) ?? (await look(parts, owner, first, abort));
        // The hooks ask for each Machine of a control plane. The first wait says what the others wait for, too.
        found.set(owner.uid, { ...known, waits: known.waits ?? waits });
      } catch (error) {
        unseen.add(
          `what applies to the owner of ${first.machine.metadata.name}: ${messageOf(error)}`,
        );
      }
      return undefined;
    },
    of: ({ metadata }) => found.get(ofMachine.get(metadata.name) ?? ''),
    all: () => [...found.values()],
    unseen: () => [...unseen],
  };
}

async function look(
  { management, workload, owners, policies, clock }: Parts,
  owner: MachineOwner,
  { machine, node, version, role }: AskedUpdate,
  abort: AbortSignal,
): Promise<PreviewedOwner> {
  const { kind, name } = owner;
  const { namespace } = machine.metadata;
  const others = await owners.nodesOf(machine, owner, version, abort);
  const plan = withRequest(node, {
    uid: 'previewed',
    machine: `${namespace}/${machine.metadata.name}`,
    version,
    role,
    requested: new Date(clock.now()).toISOString(),
    platform: platformOf(node) ?? 'unknown',
    url: 'previewed',
    owner: ownerIn(owner, { uid: 'previewed', isNew: true }, others),
  });
  const all = (await listNodes(workload, { abort })).items;
  const world = worldOf(
    plan,
    all.map((each) => (each.metadata.name === node.metadata.name ? plan : each)),
  );
  const policy = policyOfPlan(capi, policies, plan, DEFAULT_POLICY, { world });
  const known = { isReadOnly: true, controlPlane: answered([]) } as const;
  const snapshot = gather(capi, plan, world, clock.now(), known);
  const [stage] = snapshot.rollout.stages;
  const sizes = (stage && wavesOf({ snapshot, policy }, stage)?.members) ?? [];
  return {
    owner: `${kind} ${namespace}/${name}`,
    kind,
    policy: policy.name,
    times: timesIn(policy),
    waves: sizes.flatMap(({ length }, index) => {
      const { settleMs, needsApproval } = policy.waves?.[index] ?? {};
      if (length === 0) return [];
      return {
        machines: length,
        ...(needsApproval === true && { approval: true as const }),
        ...(settleMs !== undefined && { settleMs }),
      };
    }),
    waits: undefined,
    maxUnavailable: await roomIn(management, owner, namespace, abort),
  };
}

function timesIn({ windows, blackouts }: RolloutPolicy): string | undefined {
  const parts = [
    ...(windows.length > 0 ? ['outside of the windows'] : []),
    ...(blackouts.length > 0 ? ['during the blackouts'] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(' and ');
}

async function roomIn(
  management: KubeClient,
  { kind, name }: MachineOwner,
  namespace: string | undefined,
  abort: AbortSignal,
): Promise<number | string | undefined> {
  if (kind !== machineDeployments.kind) return undefined;
  const found = await ifFound(management.get(machineDeployments, name, { namespace, abort }));
  // Cluster API uses 0 if the field is missing.
  return found?.spec?.rollout?.strategy?.rollingUpdate?.maxUnavailable ?? 0;
}

/** Returns the lines about one owner. */
export function ownerLines(previewed: PreviewedOwner): string[] {
  const { owner, policy, waves } = previewed;
  const line = (heading: string, text: string): string => `  ${heading.padEnd(8)} ${text}`;
  return [
    `${owner}, once Cluster API wants to update its Machines in place:`,
    line('policy', policy === undefined ? 'no UpgradePolicy covers it' : `UpgradePolicy ${policy}`),
    ...(waves.length > 1 || waves[0]?.approval === true ? [line('waves', waveText(waves))] : []),
    ...beforeMarks(previewed).map((text) => line('before', text)),
    line('then', afterMarks(previewed)),
  ];
}

function waveText(waves: readonly PreviewedWave[]): string {
  return waves
    .map(({ machines, approval }, index) => {
      const many = `${counted(machines, 'Machine')}${approval === true ? ' after an approval' : ''}`;
      if (index === 0) return `first ${many}`;
      const { settleMs = 0 } = waves[index - 1] ?? {};
      return `then ${settleMs > 0 ? `${formatDuration(settleMs)} later ` : ''}${many}`;
    })
    .join(', ');
}

function beforeMarks({ waits, times }: PreviewedOwner): string[] {
  if (waits !== undefined)
    return [`Refit makes Cluster API ask again later, and nothing is marked. Now ${waits}`];
  return times === undefined
    ? []
    : [`${times}, Refit makes Cluster API ask again later, and nothing is marked`];
}

function afterMarks({ kind, maxUnavailable = 0 }: PreviewedOwner): string {
  return kind === machineDeployments.kind
    ? `Cluster API does not ask again for a day, and marks Machines as maxUnavailable (${maxUnavailable}) allows. A marked Machine that must wait, waits in its place and uses up this room`
    : 'Cluster API asks before each Machine. A marked Machine that must wait, waits in its place, and no other Machine is updated';
}
