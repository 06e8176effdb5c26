/**
 * Applies the version skew rules of Kubernetes to Plans that install K3s or RKE2. A server of these products is one
 * process with a kubelet and an API server, so the Nodes show the versions of the API servers.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { SkewRules } from '../../../engine/contract/features.ts';
import type { Endpoint, World } from '../../../engine/contract/world.ts';
import { controlKey } from '../../../engine/model/controls.ts';
import {
  ROLLS_BACK_ANNOTATION,
  ROLLS_BACK_REASON_ANNOTATION,
  ROLLS_BACK_TO_ANNOTATION,
} from '../../../engine/model/earlier-versions.ts';
import { inState, type Rollout, type Stage, type Target } from '../../../engine/model/rollout.ts';
import type { VersionGap } from '../../../engine/model/version-gap.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import { type KubeObject, kubeletVersionOf, type Node, nodes } from '../../../kube/resources.ts';
import { virtualBy } from '../../../kube/virtual-nodes.ts';
import type { ConditionUpdate } from '../../../runtime/conditions.ts';
import { defined } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import type { ApiServer } from '../../../versions/plan-rules.ts';
import { isOlder } from '../../../versions/release-parts.ts';
import { endpointsOf } from '../../shared/node-endpoints.ts';
import type { CattleConfig } from './config.ts';
import {
  doubtAbout,
  type Installed,
  installedBy,
  isInstaller,
  isReported,
  reportedVersion,
} from './installed-version.ts';
import { isWindows, jobNamesOf } from './job.ts';
import { isLeftOut } from './job-observation.ts';
import { resolveLatest } from './latest.ts';
import { CONTROL_PREFIX, DISABLED, hashOn, selects } from './names.ts';
import { jobFor } from './plan-jobs.ts';

/** The settings of the controller that decide whether the rules apply to a Plan. */
export type VersionConfig = Pick<
  CattleConfig,
  'installers' | 'checksVersions' | 'apiServerVersion'
>;

/**
 * A node with one of these labels runs an API server. K3s and RKE2 set the first label. Earlier releases of K3s set the
 * second label.
 */
const SERVER_LABELS = [CONTROL_PLANE, 'node-role.kubernetes.io/master'];

/** The name of the API server in messages, if no Node runs it. */
const API_SERVER = 'the cluster';

export function isServer({ metadata }: KubeObject): boolean {
  return SERVER_LABELS.some((label) => ownMember(metadata.labels, label) !== undefined);
}

/** Returns what the Plan installs. If the checks are off, returns that the Plan installs something else. */
export function judgedInstallation(
  plan: CattlePlan,
  latest: string,
  { installers, checksVersions = true }: VersionConfig,
): Installed {
  return checksVersions ? installedBy(plan, latest, installers) : { kind: 'other' };
}

export function skewRulesOf(config: VersionConfig): SkewRules<CattlePlan> {
  return {
    isWait: true,
    versionOf: kubeletVersionOf,
    apiServers: (plan, world) => {
      const { kind } = judgedInstallation(plan, resolveLatest(plan, undefined).version, config);
      return kind === 'kubernetes' ? apiServersIn(world, config) : undefined;
    },
    upgradedBy: (node, plan) => {
      const hash = hashOn(node, plan);
      return hash === undefined || hash === DISABLED ? undefined : plan.metadata.uid;
    },
  };
}

function apiServersIn(world: World, { apiServerVersion }: VersionConfig): readonly ApiServer[] {
  const servers = serversAmong(world.list(nodes));
  return servers.length > 0 ? servers : [{ name: API_SERVER, version: apiServerVersion?.() }];
}

const serversAmong = onceForEach((all: readonly Node[]): readonly ApiServer[] =>
  all.filter(isServer).map((node) => ({
    name: node.metadata.name,
    version: kubeletVersionOf(node),
    isOfKubelet: true,
  })),
);

const SERVER_CHECKS: NonNullable<Stage['serverChecks']> = {
  escape: 'the controller runs with SYSTEM_UPGRADE_REFIT_CHECKS=false',
};

/**
 * Returns the API servers of K3s and RKE2, which answer at the InternalIP of each server. A Node without such an address
 * is left out. A Node with the label of etcd alone runs no API server.
 */
export function serverEndpoints(world: World): Endpoint[] {
  return endpointsOf(world).filter(({ host }) => host !== undefined);
}

/** Returns the field of a stage that makes Refit ask the API servers; empty if the Plan or the settings ask for no such check. */
export function serverChecksOf(
  plan: CattlePlan,
  latest: string,
  world: World,
  config: VersionConfig,
): Pick<Stage, 'serverChecks'> {
  // A Plan may say that another image installs Kubernetes, but then nobody knows how its API servers can be reached.
  const isKnown = isInstaller(plan.spec?.upgrade?.image ?? '', config.installers);
  const isJudged = judgedInstallation(plan, latest, config).kind !== 'other';
  return isKnown && isJudged && serverEndpoints(world).length > 0
    ? { serverChecks: SERVER_CHECKS }
    : {};
}

/** Returns the fields of a stage that make the rules apply to it; empty if the Plan does not install Kubernetes. */
export function versionFieldsOf(
  plan: CattlePlan,
  latest: string,
  config: VersionConfig,
): Pick<Stage, 'kubernetesVersion' | 'controlPlaneFirst'> {
  const installed = judgedInstallation(plan, latest, config);
  if (installed.kind === 'other') return {};
  const kubernetesVersion = installed.kind === 'kubernetes' ? installed.version : undefined;
  return { ...defined({ kubernetesVersion }), controlPlaneFirst: true };
}

/**
 * Returns the run that the Plan rolls back, as `refit rollback` says in an annotation. The annotation stays on the Plan,
 * so it counts only while the Plan has the version of the roll-back. If the Plan does not name this version, because an
 * earlier release wrote it, the annotation counts while a node is newer than the version of the Plan.
 */
export function rollBackOn(
  plan: CattlePlan,
  world: World,
  targets: readonly Target[],
  version: string | undefined,
): Pick<Rollout, 'rollsBack' | 'rollsBackReason'> {
  const { annotations } = plan.metadata;
  const rollsBack = ownMember(annotations, controlKey(ROLLS_BACK_ANNOTATION, CONTROL_PREFIX));
  if (rollsBack === undefined || rollsBack === '' || version === undefined) return {};
  const back = ownMember(annotations, controlKey(ROLLS_BACK_TO_ANNOTATION, CONTROL_PREFIX));
  const counts =
    back === undefined ? isAhead(targets, world, version) : reportedVersion(back) === version;
  if (!counts) return {};
  const rollsBackReason = ownMember(
    annotations,
    controlKey(ROLLS_BACK_REASON_ANNOTATION, CONTROL_PREFIX),
  );
  return { rollsBack, ...defined({ rollsBackReason }) };
}

/** Returns true if a node that the Plan has not upgraded is newer than the version. */
function isAhead(targets: readonly Target[], world: World, version: string): boolean {
  const states = ['pending', 'intended', 'failed'] as const;
  return states.some((state) =>
    inState({ targets }, state).some(({ name }) => isNewer(world.get(nodes, name), version)),
  );
}

/**
 * Returns what a node lacks after its Job has succeeded: the kubelet does not report the version that the Job
 * installed. Undefined if nothing is missing, if the Plan installs something else, or if the Plan no longer selects the
 * node and has no Job for it.
 */
export function versionGapOf(
  world: World,
  rollout: Rollout,
  { kubernetesVersion: wanted }: Stage,
  { name }: Target,
  plan: CattlePlan,
): VersionGap | undefined {
  const node = world.get(nodes, name);
  if (wanted === undefined || !node || isLeftOut(world, rollout, node, plan)) return undefined;
  const reported = kubeletVersionOf(node);
  if (isReported(reported, wanted, isWindows(node))) return undefined;
  const { namespace } = plan.metadata;
  // Kubernetes may have deleted the Job. Then its name is the name that a Job gets, unless that of another node has it.
  const [usual] = jobNamesOf(plan.metadata.name, name, rollout.id);
  const job = jobFor(world, rollout, name, plan)?.metadata.name ?? usual;
  return { wanted, reported, work: `Job ${namespace}/${job} succeeded on Node ${name}` };
}

function isNewer(node: Node | undefined, version: string): boolean {
  const found = node && kubeletVersionOf(node);
  return found !== undefined && isOlder(version, found);
}

/** The type of Refit's own condition which says that the rules cannot be applied, that the tag of the image differs, or that no image has it. */
export const VERSION_TYPE = 'RefitVersion';

/** Returns the condition about the version of the Plan; undefined if there is nothing to say. */
export function versionCondition(
  plan: CattlePlan,
  latest: string,
  config: VersionConfig,
): ConditionUpdate | undefined {
  const installed = judgedInstallation(plan, latest, config);
  const message = doubtAbout(installed);
  if (message === undefined) return undefined;
  return { type: VERSION_TYPE, status: 'True', reason: reasonFor(installed), message };
}

function reasonFor(installed: Installed): string {
  if (installed.kind === 'unverifiable') return 'Unverifiable';
  const isUnpublished = installed.kind === 'kubernetes' && installed.unpublished !== undefined;
  return isUnpublished ? 'TagUnpublished' : 'TagDiffers';
}

/**
 * Returns the sentence that refuses the answer of a channel, because the answer is older than the version that the
 * channel gave before, or than the kubelet of a node of the Plan. Undefined if the answer is accepted.
 */
export function refusedAnswer(
  plan: CattlePlan,
  answer: string,
  all: readonly Node[],
  config: VersionConfig,
): string | undefined {
  const installed = judgedInstallation(plan, answer, config);
  if (installed.kind !== 'kubernetes') return undefined;
  const { latestVersion = '' } = plan.status ?? {};
  const remedy = 'Refit does not accept it; set spec.version if the nodes must go to that version';
  if (isOlder(answer, latestVersion))
    return `the channel says ${answer}, which is older than ${latestVersion}, which it said before: ${remedy}`;
  // A virtual Node has no kubelet on a host.
  const newer = all
    .filter((node) => selects(plan, node) && virtualBy(node) === undefined)
    .find((node) => isNewer(node, installed.version));
  return (
    newer &&
    `the channel says ${answer}, which is older than ${kubeletVersionOf(newer)} of Node ${newer.metadata.name}: ${remedy}`
  );
}
