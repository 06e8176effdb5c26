/**
 * Finds the other Plan for which `spec.prepare` of a Plan waits. With the images of K3s and RKE2, the command `prepare`
 * waits on the node until no node of the other Plan is in progress, and then until every server reports the version of
 * its own Plan. It waits for ever if the other Plan does not exist, or leaves out a server, and the image does not say so.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { AwaitedPlan } from '../../../engine/model/awaited-plan.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import { type KubeObject, nodes } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { ownMember } from '../../../util/own-member.ts';
import { listed } from '../../../util/phrases.ts';
import { conditionOf } from './conditions.ts';
import { isInstaller, plannedVersion, reportedVersion } from './installed-version.ts';
import { selects } from './names.ts';

/** Why the wait of a Plan never ends, as a relative clause about the other Plan, and what a person can do. */
type Fault = NonNullable<AwaitedPlan['fault']>;

const REMEDY = 'write the name of the right Plan into spec.prepare.args, or create that Plan';
const ONE_VERSION = 'give both Plans the same version';
const EVERY_SERVER = `let that Plan upgrade every Node with the label ${CONTROL_PLANE}`;

/** Returns whether the Plan is complete, and at which version. */
const endOf = (plan: CattlePlan) => [
  conditionOf(plan, 'Complete')?.status,
  plan.status?.latestVersion,
];

const isCompleteFor = (plan: CattlePlan, other: CattlePlan): boolean =>
  sameJson(endOf(other), ['True', plan.status?.latestVersion]);

/** Such a Plan runs no `prepare` any more. */
const isDone = (plan: CattlePlan): boolean => conditionOf(plan, 'Complete')?.status === 'True';

/** Returns what another Plan that waits for this Plan depends on. */
export const waitFacts = (plan: CattlePlan) => [...endOf(plan), awaitedName(plan)];

/** Returns the name of the Plan, in the namespace of `plan`; undefined if `prepare` waits for no Plan. */
function awaitedName({ spec }: CattlePlan): string | undefined {
  const [command, name] = spec?.prepare?.args ?? [];
  return command === 'prepare' ? name : undefined;
}

/** Returns the Plan that must be complete before the Jobs of `plan` can do their work; undefined if there is none. */
export function awaitedBy(plan: CattlePlan, world: World): AwaitedPlan | undefined {
  const { namespace } = plan.metadata;
  const name = awaitedName(plan);
  if (name === undefined) return undefined;
  const find = (other: string): CattlePlan | undefined => world.get(cattlePlans, other, namespace);
  const other = find(name);
  const isComplete = other !== undefined && isCompleteFor(plan, other);
  const fault = (isComplete ? undefined : faultOf(plan, find)) ?? laggingFault(plan, other, world);
  if (isComplete && fault === undefined) return undefined;
  const title = `Plan ${namespace}/${name}`;
  return { plan: title, ...(fault === undefined ? {} : { fault }) };
}

/** Returns a sentence if the Plan waits for a Plan that does not exist, for itself, or for servers that nobody upgrades. */
export function endlessWaits(
  plan: CattlePlan,
  world: World,
  plans: readonly KubeObject[],
): string[] {
  const namespace = namespaceOf(plan);
  const given = neighboursOf(plan, plans);
  const find = (wanted: string): CattlePlan | undefined =>
    given.findLast(({ metadata }) => metadata.name === wanted) ??
    world.get(cattlePlans, wanted, namespace);
  const awaited = awaitedName(plan);
  const other = awaited === undefined ? undefined : find(awaited);
  const fault = faultOf(plan, find) ?? laggingFault(plan, other, world);
  return fault === undefined ? [] : [sentenceOf(plan, fault)];
}

/**
 * Returns a sentence if the Plan waits for ever, as far as files can show it. The Plan that it waits for may be in the
 * cluster. So if it is in no file, this counts only if the files have the Plan that is probably meant.
 */
export function endlessWaitsAmong(plan: CattlePlan, plans: readonly CattlePlan[]): string[] {
  const awaited = awaitedName(plan);
  if (awaited === undefined) return [];
  const given = neighboursOf(plan, plans);
  const find = (wanted: string): CattlePlan | undefined =>
    given.findLast(({ metadata }) => metadata.name === wanted);
  if (awaited === plan.metadata.name || find(awaited)) {
    const fault = faultOf(plan, find);
    return fault === undefined ? [] : [sentenceOf(plan, fault)];
  }
  const meant = given.findLast((other) => isFirstOf(plan, other));
  if (!meant) return [];
  const { name } = meant.metadata;
  const remedy = `write ${name} into spec.prepare.args if that Plan is meant, or else check that the cluster has Plan ${awaited}`;
  const why = `which none of the files has, and Plan ${name} has the same image`;
  return [sentenceOf(plan, { why, remedy })];
}

/** Returns true if `other` runs the same image as the Plan and waits for no Plan, as Plans for servers do. */
function isFirstOf(plan: CattlePlan, other: CattlePlan): boolean {
  const image = plan.spec?.upgrade?.image;
  return (
    other.metadata.name !== plan.metadata.name &&
    awaitedName(other) === undefined &&
    image !== undefined &&
    other.spec?.upgrade?.image === image
  );
}

const namespaceOf = ({ metadata }: CattlePlan): string => metadata.namespace ?? 'default';

/** Returns the Plans in the namespace of the Plan. `plans` may contain plans of other kinds. */
function neighboursOf(plan: CattlePlan, plans: readonly KubeObject[]): CattlePlan[] {
  return (plans as readonly CattlePlan[]).filter((other) =>
    sameJson([namespaceOf(other), other.apiVersion], [namespaceOf(plan), plan.apiVersion]),
  );
}

function sentenceOf(plan: CattlePlan, { why, remedy }: Fault): string {
  const namespace = namespaceOf(plan);
  const { name } = plan.metadata;
  return `Plan ${namespace}/${name} waits for Plan ${namespace}/${awaitedName(plan)} in spec.prepare, ${why}: ${remedy}`;
}

/** Returns why the wait of the Plan never ends; undefined if it may end. */
function faultOf(
  plan: CattlePlan,
  find: (name: string) => CattlePlan | undefined,
): Fault | undefined {
  const own = plan.metadata.name;
  const passed = new Set<string>();
  for (let next = awaitedName(plan); next !== undefined; ) {
    if (next === own) {
      const why = passed.size === 0 ? 'which is this Plan itself' : 'which waits for this Plan';
      return { why, remedy: REMEDY };
    }
    const other = find(next);
    if (other === undefined)
      return passed.size === 0 ? { why: 'which does not exist', remedy: REMEDY } : undefined;
    if (passed.size === 0 && hasOtherVersion(plan, other)) return versionFault(plan, other);
    if (passed.has(next)) return undefined;
    passed.add(next);
    next = awaitedName(other);
  }
  return undefined;
}

/**
 * Returns whether `prepare` waits for a version that the other Plan does not install. A channel may still give the other
 * Plan the right version, and a Plan that is complete runs no `prepare`.
 */
function hasOtherVersion(plan: CattlePlan, other: CattlePlan): boolean {
  const wanted = versionOf(plan);
  const given = plannedVersion(other);
  return !isDone(plan) && wanted !== undefined && given !== undefined && wanted !== given;
}

const versionOf = (plan: CattlePlan): string | undefined =>
  plannedVersion(plan) ?? plan.status?.latestVersion;

function versionFault(plan: CattlePlan, other: CattlePlan): Fault {
  const why = `which has the version ${versionOf(other)} and not ${versionOf(plan)}`;
  return { why, remedy: ONE_VERSION };
}

/**
 * Returns the fault that a server has another version and keeps it: the other Plan does not select the server, or is
 * complete. Only the images of K3s and RKE2 ask all servers.
 */
function laggingFault(
  plan: CattlePlan,
  other: CattlePlan | undefined,
  world: World,
): Fault | undefined {
  const version = versionOf(plan);
  if (isDone(plan) || other === undefined || version === undefined) return undefined;
  if (!isInstaller(plan.spec?.prepare?.image ?? '')) return undefined;
  const isComplete = isCompleteFor(plan, other);
  const wanted = reportedVersion(version);
  const names = world.list(nodes).flatMap((node) => {
    const { name, labels } = node.metadata;
    const isServer = ownMember(labels, CONTROL_PLANE) !== undefined;
    const { kubeletVersion = '' } = node.status?.nodeInfo ?? {};
    const isLeft = kubeletVersion !== wanted && (isComplete || !selects(other, node));
    return isServer && kubeletVersion !== '' && isLeft ? `${name} (${kubeletVersion})` : [];
  });
  if (names.length === 0) return undefined;
  return { why: `which leaves ${listed(names)} without ${wanted}`, remedy: EVERY_SERVER };
}
