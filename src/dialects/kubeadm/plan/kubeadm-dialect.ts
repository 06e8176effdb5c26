/** Implements the dialect of `refit kubeadm`, which turns the recorded request into a rollout of the engine. */

import { cordonOwner, pendingOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { Dialect } from '../../../engine/contract/dialect.ts';
import type { OrphanedPlan } from '../../../engine/contract/features.ts';
import type { World } from '../../../engine/contract/world.ts';
import { because } from '../../../engine/model/reasons.ts';
import {
  newTarget,
  pendingOwnerOf,
  type Rollout,
  type Stage,
  type Target,
  type TurnTime,
} from '../../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { isRelevant } from '../../../engine/snapshot/predicates.ts';
import {
  apiVersionOf,
  type ConfigMap,
  configMaps,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  nodes,
} from '../../../kube/resources.ts';
import { isOlder } from '../../../versions/release-parts.ts';
import { endpointsOf } from '../../shared/node-endpoints.ts';
import { orphanedRollout } from '../../shared/orphaned-rollout.ts';
import type { Part } from '../host/host.ts';
import { HOST_DEADLINE_MS } from '../host/host-deadline.ts';
import {
  drainDelegation,
  type HostUpgrades,
  isUnchanged,
  LEADER,
  reportOn,
  sshSignal,
} from './kubeadm-signal.ts';
import * as planObject from './plan-object.ts';

/** Returns the dialect. `upgrades` is undefined for commands that only read. */
export function kubeadmDialect(upgrades: HostUpgrades | undefined): Dialect<ConfigMap> {
  return {
    name: 'kubeadm',
    rollBack: {
      byHand: 'kubeadm is carried out by a command; run refit kubeadm apply --back',
    },
    plans: configMaps,
    planObjects: {
      namespace: planObject.PLACE.namespace,
      fieldSelector: `metadata.name=${planObject.PLACE.name}`,
    },
    watched: [{ resource: nodes, isRelevant }],
    resolve,
    recordsSkips: true,
    ordersRetries: 'always',
    retriedBy: (plan) => {
      const back = planObject.requestOf(plan)?.back === true ? ' --back' : '';
      return `run refit kubeadm apply${back} again after its end`;
    },
    project: (rollout, plan) => planObject.withRecord(plan, rollout),
    planRules: { apply: policyOf },
    objectOf: (_stage, { name }, world) => world.get(nodes, name),
    versions: { isBehind: (node, { version }) => isOlder(kubeletVersionOf(node), version) },
    endpoints: endpointsOf,
    drainDelegation,
    orphanedWork: { plans: orphanedPlans },
    signal: sshSignal(upgrades),
  };
}

export const kubeadmView: Dialect = kubeadmDialect(undefined);

function resolve(plan: ConfigMap, _world: World, now: TurnTime): Rollout {
  const request = planObject.requestOf(plan);
  const { recorded, unread } = planObject.readRecord(plan);
  const message = `ConfigMap ${planObject.PLACE.namespace}/${plan.metadata.name} has no valid data.request; delete it, then run \`refit kubeadm apply\` again`;
  return {
    source: planObject.sourceOfPlan(plan),
    id: request?.version ?? '',
    phase: 'new',
    blocked: false,
    stages: request ? stagesOf(request, now) : [],
    ...recorded,
    problems: request ? [] : [because('InvalidPlan', message)],
    unread: unread === undefined ? undefined : because('RecordUnread', unread),
  };
}

function stagesOf(request: planObject.Request, now: TurnTime): Stage[] {
  const { version, concurrent, certificates, leader, followers, kubelets, workers } = request;
  const stage = (
    id: string,
    role: Stage['role'],
    names: readonly string[],
    procedure?: Part,
  ): Stage => ({
    id,
    command: 0,
    role,
    maxInFlight: role === 'worker' ? concurrent : 1,
    version,
    ...(procedure === undefined ? {} : { procedure }),
    ...(request.back ? { goesBack: true } : {}),
    forced: false,
    targets: names.map((name) => newTarget({ key: `${id}/${name}`, name }, now)),
  });
  const first = kubelets.length > 0 ? 'kubeadm' : undefined;
  const renewal = {
    ...stage(planObject.RENEWAL, 'controller', certificates, 'certificates'),
    keepsVersion: true,
  };
  const controlPlane = [
    ...(certificates.length > 0 ? [renewal] : []),
    stage(LEADER, 'controller', leader, first),
    stage('followers', 'controller', followers, first),
    stage('kubelets', 'controller', kubelets, 'kubelet'),
  ];
  const last = stage('workers', 'worker', workers);
  return request.back ? [last, ...controlPlane] : [...controlPlane, last];
}

export function policyOf(_plan: KubeObject, policy: RolloutPolicy): RolloutPolicy {
  return policy.name === undefined ? { ...policy, targetDeadlineMs: HOST_DEADLINE_MS } : policy;
}

const { kind } = configMaps;
const OWN = pendingOwnerOf({ kind, uid: '' });

/**
 * Finds the nodes with a taint or a cordon that an earlier plan set, so that the leader removes it. A cordon must stay on a
 * host that may be half upgraded, so it counts only if the host was not changed.
 */
export function orphanedPlans(
  world: World,
  plans: readonly ConfigMap[],
): OrphanedPlan<ConfigMap>[] {
  const current = plans.map((plan) => planObject.sourceOfPlan(plan).uid);
  return world.list(nodes).flatMap((node) => {
    const taint = pendingOwner(node);
    // A taint without a uid also comes from an earlier plan, because only an earlier version of Refit set such taints.
    const tainting = taint?.startsWith(OWN) === true ? taint.slice(OWN.length) : undefined;
    const isPast = taint === '' || (tainting !== undefined && !current.includes(tainting));
    return [
      ...(isPast ? [orphanedPlan(node, tainting ?? '', { state: 'pending', since: '' })] : []),
      ...plansOfCordon(node, current),
    ];
  });
}

/** Returns the earlier plan whose cordon is left on the Node, if the host is unchanged; otherwise an empty list. */
function plansOfCordon(node: Node, current: readonly string[]): OrphanedPlan<ConfigMap>[] {
  const owner = readOwner(cordonOwner(node) ?? '');
  const report = reportOn(node);
  const isPast = owner?.kind === kind && !current.includes(owner.plan);
  if (!isPast || report === undefined || !isUnchanged(report)) return [];
  return [orphanedPlan(node, owner.plan, { state: 'failed', since: owner.attempt })];
}

/**
 * Returns an orphaned plan that has the Node as its only target. No rollout uses the key of this target, so Refit does
 * no work on the host.
 */
function orphanedPlan(
  { metadata: { name } }: Node,
  uid: string,
  recorded: Pick<Target, 'state' | 'since'>,
): OrphanedPlan<ConfigMap> {
  const source = {
    apiVersion: apiVersionOf(configMaps),
    kind,
    name: planObject.PLACE.name,
    uid,
    created: '',
  };
  const target = { key: `left/${name}`, name, ...recorded };
  return {
    rollout: orphanedRollout(source, '', target, 'its plan was deleted'),
    plan: { metadata: { ...planObject.PLACE, uid } },
  };
}
