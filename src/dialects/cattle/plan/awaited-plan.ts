/**
 * Finds the other Plan for which `spec.prepare` of a Plan waits. With the images of K3s and RKE2, the command `prepare`
 * waits on the node until no node of the other Plan is in progress, and then until every server reports the version of
 * its own Plan. It waits for ever if the other Plan does not exist, or leaves out a server, and the image does not say so.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { AwaitedPlan } from '../../../engine/model/awaited-plan.ts';
import { CONTROL_PLANE, hasControlPlaneLabel } from '../../../kube/control-plane-label.ts';
import { type KubeObject, kubeletVersionOf, type Node, nodes } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import { listed } from '../../../util/phrases.ts';
import { compareVersionTexts } from '../../../util/version.ts';
import { conditionOf } from './conditions.ts';
import {
  installsKubernetes,
  isInstaller,
  plannedVersion,
  reportedVersion,
} from './installed-version.ts';
import { hashOn, selects } from './names.ts';

/** Why the wait of a Plan never ends, as a relative clause about the other Plan, and what a person can do. */
type Fault = NonNullable<AwaitedPlan['fault']>;

const REMEDY = 'write the name of the right Plan into spec.prepare.args, or create that Plan';
const ONE_VERSION = 'give both Plans the same version';
const LATER_VERSION = 'give this Plan the version of the servers';
const EVERY_SERVER = `let that Plan upgrade every Node with the label ${CONTROL_PLANE}`;

/** What the wait of a Plan depends on. */
interface Surroundings {
  /** Returns the Plan with this name in the namespace of the waiting Plan. */
  readonly find: (name: string) => CattlePlan | undefined;
  /** The Plans that may upgrade servers. */
  readonly plans: readonly CattlePlan[];
  /** What `prepare` asks of the servers; undefined if it asks nothing, or if nobody knows. */
  readonly asked: AskedServers | undefined;
  /** Further images that install K3s or RKE2. */
  readonly installers: readonly string[] | undefined;
}

/** Returns whether the Plan is complete, and at which version. */
const endOf = (plan: CattlePlan) => [
  conditionOf(plan, 'Complete')?.status,
  plan.status?.latestVersion,
];

const isCompleteFor = (plan: CattlePlan, other: CattlePlan): boolean =>
  sameJson(endOf(other), ['True', plan.status?.latestVersion]);

const isAtWork = ({ status }: CattlePlan): boolean => (status?.applying ?? []).length > 0;

/** Such a Plan runs no `prepare` any more. */
const isDone = (plan: CattlePlan): boolean => conditionOf(plan, 'Complete')?.status === 'True';

/** Returns what another Plan that waits for this Plan depends on. */
export const waitFacts = (plan: CattlePlan) => [
  ...endOf(plan),
  awaitedName(plan),
  isAtWork(plan),
  plan.status?.latestHash,
  plan.spec?.version,
  plan.spec?.nodeSelector,
];

/** Returns the name of the Plan, in the namespace of `plan`; undefined if `prepare` waits for no Plan. */
function awaitedName({ spec }: CattlePlan): string | undefined {
  const [command, name] = spec?.prepare?.args ?? [];
  return command === 'prepare' ? name : undefined;
}

/**
 * Returns the Plan that must end before the Jobs of `plan` can do their work; undefined if there is none. `installers`
 * are further images that install K3s or RKE2.
 */
export function awaitedBy(
  plan: CattlePlan,
  world: World,
  installers?: readonly string[],
): AwaitedPlan | undefined {
  const { namespace } = plan.metadata;
  const name = awaitedName(plan);
  if (name === undefined) return undefined;
  const find = (other: string): CattlePlan | undefined => world.get(cattlePlans, other, namespace);
  const other = find(name);
  const title = `Plan ${namespace}/${name}`;
  const asked = askedServers(plan, world, installers);
  if (other !== undefined) {
    const isOver =
      asked === undefined
        ? isCompleteFor(plan, other)
        : !isAtWork(other) && asked.behind.length === 0;
    if (isOver) return undefined;
  }
  const ends =
    asked === undefined
      ? `${title} is complete with the same version`
      : `no node of ${title} is in progress, and every server reports ${asked.wanted}`;
  const fault = faultOf(plan, { find, plans: world.list(cattlePlans), asked, installers });
  return { plan: title, ends, ...(fault === undefined ? {} : { fault }) };
}

/** Returns a sentence if the Plan waits for a Plan that does not exist, for itself, or for servers that nobody upgrades. */
export function endlessWaits(
  plan: CattlePlan,
  world: World,
  plans: readonly KubeObject[],
  installers?: readonly string[],
): string[] {
  if (awaitedName(plan) === undefined) return [];
  const namespace = namespaceOf(plan);
  const given = neighboursOf(plan, plans);
  const names = new Set(given.map(({ metadata }) => metadata.name));
  const others = world
    .list(cattlePlans)
    .filter((other) => namespaceOf(other) !== namespace || !names.has(other.metadata.name));
  const fault = faultOf(plan, {
    find: (wanted) =>
      given.findLast(({ metadata }) => metadata.name === wanted) ??
      world.get(cattlePlans, wanted, namespace),
    plans: [...given, ...others],
    asked: askedServers(plan, world, installers),
    installers,
  });
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
    const fault = faultOf(plan, { find, plans: given, asked: undefined, installers: undefined });
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

const nameOf = (plan: CattlePlan) => [namespaceOf(plan), plan.metadata.name];

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
function faultOf(plan: CattlePlan, around: Surroundings): Fault | undefined {
  const awaited = awaitedName(plan);
  if (awaited === undefined) return undefined;
  const other = around.find(awaited);
  return (
    chainFault(plan, around) ??
    (other === undefined ? undefined : serversFault(plan, other, around))
  );
}

/** Returns the fault that the other Plan does not exist, or that the Plan waits for itself. */
function chainFault(plan: CattlePlan, { find }: Surroundings): Fault | undefined {
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
    if (passed.has(next)) return undefined;
    passed.add(next);
    next = awaitedName(other);
  }
  return undefined;
}

const versionOf = (plan: CattlePlan): string | undefined =>
  plannedVersion(plan) ?? plan.status?.latestVersion;

/** Returns true if `prepare` has an image of K3s or RKE2. */
function preparesKubernetes(
  { spec }: CattlePlan,
  installers: readonly string[] | undefined,
): boolean {
  return isInstaller(spec?.prepare?.image ?? '', installers);
}

/** The version that `prepare` wants of every server, and the servers that do not report it. */
interface AskedServers {
  readonly wanted: string;
  readonly behind: readonly Node[];
}

/**
 * Returns what `prepare` asks of the servers; undefined if it asks nothing, or if nobody knows. Only the images of K3s
 * and RKE2 ask all servers.
 */
function askedServers(
  plan: CattlePlan,
  world: World,
  installers: readonly string[] | undefined,
): AskedServers | undefined {
  const version = versionOf(plan);
  if (!preparesKubernetes(plan, installers) || version === undefined) return undefined;
  const servers = world.list(nodes).filter(({ metadata }) => hasControlPlaneLabel(metadata.labels));
  if (servers.length === 0) return undefined;
  const wanted = reportedVersion(version);
  const behind = servers.filter((node) => {
    const reported = kubeletVersionOf(node) ?? '';
    return reported !== '' && reported !== wanted;
  });
  return { wanted, behind };
}

/** Returns the fault that servers have another version than `prepare` waits for, and that no Plan changes that. */
function serversFault(
  plan: CattlePlan,
  other: CattlePlan,
  { plans, asked, installers }: Surroundings,
): Fault | undefined {
  // A Plan that is complete runs no `prepare` any more.
  if (isDone(plan) || !preparesKubernetes(plan, installers)) return undefined;
  // Whatever the image of the other Plan is called, the author of the Plan relies on it.
  const bringers = plans.filter(
    (each) => sameJson(nameOf(each), nameOf(other)) || installsKubernetes(each, installers),
  );
  const left = asked?.behind.filter(
    (node) => !bringers.some((each) => mayBring(each, node, asked.wanted)),
  );
  if (left?.length === 0) return undefined;
  if (hasOtherVersion(plan, other)) {
    const why = `which has the version ${versionOf(other)} and not ${versionOf(plan)}`;
    return { why, remedy: ONE_VERSION };
  }
  if (asked === undefined || left === undefined) return undefined;
  const names = left.map((node) => `${node.metadata.name} (${kubeletVersionOf(node) ?? ''})`);
  const areLater = left.every(
    (node) => compareVersionTexts(kubeletVersionOf(node), asked.wanted) > 0,
  );
  return {
    why: `which leaves ${listed(names)} without ${asked.wanted}`,
    remedy: areLater ? LATER_VERSION : EVERY_SERVER,
  };
}

/**
 * Returns whether `prepare` waits for a version that the other Plan does not install. A channel may still give the other
 * Plan the right version.
 */
function hasOtherVersion(plan: CattlePlan, other: CattlePlan): boolean {
  const wanted = versionOf(plan);
  const given = plannedVersion(other);
  return wanted !== undefined && given !== undefined && wanted !== given;
}

/** Returns true if the Plan may still bring the version to the node. A channel may still name any version. */
function mayBring(plan: CattlePlan, node: Node, wanted: string): boolean {
  if (!selects(plan, node)) return false;
  const given = plannedVersion(plan);
  if (given !== undefined && reportedVersion(given) !== wanted) return false;
  // The Plan has upgraded this node, so it does not upgrade the node again.
  const { latestHash } = plan.status ?? {};
  return !(isDone(plan) && latestHash !== undefined && hashOn(node, plan) === latestHash);
}
