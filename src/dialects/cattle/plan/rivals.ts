/**
 * Finds Plans that upgrade the same Node to different versions. Refit runs both, one after the other, so the final
 * version is random. The original gives no warning. Plans with different images or commands do not conflict, because
 * they upgrade different things.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import { type KubeObject, nodes } from '../../../kube/resources.ts';
import { selectsAllOf } from '../../../kube/selectors.ts';
import { sameJson } from '../../../util/json.ts';
import { installsKubernetes } from './installed-version.ts';
import { resolveLatest } from './latest.ts';
import { selects } from './names.ts';

const REMEDY = 'give both Plans the same version, or selectors that match no common Node';

/**
 * Returns one sentence for each other Plan that conflicts with the Plan on a Node of the cluster. If `plans` contains
 * the same Plan several times, only its last object is used.
 */
export function rivalsInCluster(
  plan: CattlePlan,
  world: World,
  plans: readonly KubeObject[],
): string[] {
  const all = plans.filter(isCattlePlan);
  const rivals = all
    .filter((other) => isRival(plan, other))
    .filter((other) => all.findLast((each) => isSame(each, other)) === other);
  if (rivals.length === 0) return [];
  const own = world.list(nodes).filter((node) => selects(plan, node));
  return rivals.flatMap((other) => {
    const [first, ...more] = own.filter((node) => selects(other, node));
    if (first === undefined) return [];
    const rest = more.length === 0 ? '' : ` and ${more.length} more`;
    return sentenceOf(plan, other, `Node ${first.metadata.name}${rest}`);
  });
}

/**
 * Returns one sentence for each other Plan that conflicts with the Plan in every cluster. This is the case if the
 * selector of one of the two Plans selects all Nodes that the other Plan selects.
 */
export function rivalsAmong(plan: CattlePlan, others: readonly CattlePlan[]): string[] {
  const own = plan.spec?.nodeSelector;
  return others
    .filter((other) => isRival(plan, other))
    .filter(({ spec }) => {
      const its = spec?.nodeSelector;
      return own && its && (selectsAllOf(own, its) || selectsAllOf(its, own));
    })
    .map((other) => sentenceOf(plan, other, 'the same Nodes'));
}

function sentenceOf(plan: CattlePlan, other: CattlePlan, which: string): string {
  // The sentence is the same for both Plans, so that a list of plans shows it once.
  const titles = [titleOf(plan), titleOf(other)].toSorted();
  return `Plans ${titles.join(' and ')} both select ${which}: ${REMEDY}`;
}

function titleOf(plan: CattlePlan): string {
  return `${nameOf(plan)} (${versionOf(plan)})`;
}

function nameOf({ metadata: { name, namespace = 'default' } }: KubeObject): string {
  return `${namespace}/${name}`;
}

function isCattlePlan(object: KubeObject): object is CattlePlan {
  return object.apiVersion?.startsWith(`${cattlePlans.group}/`) === true;
}

/**
 * Returns true if both objects are the same Plan. A Plan in a file may have no namespace. Such a Plan matches a Plan
 * with the same name in any namespace.
 */
function isSame({ metadata: one }: CattlePlan, { metadata: other }: CattlePlan): boolean {
  const isSomewhere = one.namespace === undefined || other.namespace === undefined;
  return one.name === other.name && (isSomewhere || one.namespace === other.namespace);
}

/** Returns true if both Plans upgrade the same software to different versions. */
function isRival(plan: CattlePlan, other: CattlePlan): boolean {
  if (isSame(plan, other)) return false;
  const version = versionOf(plan);
  const its = versionOf(other);
  const areKnown = version !== undefined && its !== undefined;
  return areKnown && version !== its && isSameWork(plan, other);
}

/**
 * Returns the version of the Plan; undefined for a Plan that cannot start, or whose concurrency does not allow any node
 * to start.
 */
function versionOf(plan: CattlePlan): string | undefined {
  const { version, problems } = resolveLatest(plan, undefined);
  const isOff = (plan.spec?.concurrency ?? 0) <= 0;
  return problems.length > 0 || isOff ? undefined : version;
}

/**
 * Returns true if both Plans upgrade the same software. The upgrade image of K3s upgrades only K3s, and the image of
 * RKE2 only RKE2. Any other image may run anything, so the commands are compared as well.
 */
function isSameWork(plan: CattlePlan, other: CattlePlan): boolean {
  const image = repositoryOf(plan.spec?.upgrade?.image);
  if (image === '' || image !== repositoryOf(other.spec?.upgrade?.image)) return false;
  const doInstall = installsKubernetes(plan) && installsKubernetes(other);
  return doInstall || sameJson(workOf(plan.spec), workOf(other.spec));
}

function workOf(spec: CattlePlan['spec']): unknown {
  const { command = [], args = [] } = spec?.upgrade ?? {};
  return [command, args];
}

/** Returns the image without its tag, its digest, and the parts that a registry adds to short names. */
function repositoryOf(image = ''): string {
  const [bare = ''] = image.split('@');
  return bare.replace(/:[^/:]*$/, '').replace(/^(?:index\.)?docker\.io\/(?:library\/)?/, '');
}
