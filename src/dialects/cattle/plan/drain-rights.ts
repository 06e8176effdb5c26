/** Finds out before an upgrade which nodes Plans drain, and whether their Jobs may do so. `kubectl drain` runs with the ServiceAccount of the Plan. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { isFinished } from '../../../drain/pods.ts';
import { kubeletVersionOf, type Node, nodes, type Pod, pods } from '../../../kube/resources.ts';
import type { AccessQuestion } from '../../../ready/access.ts';
import type { Asking } from '../../../ready/asking.ts';
import { type FoundBy, grouped } from '../../../ready/finding.ts';
import { accountOf, ownComponentOf, slimPod } from '../../../ready/pods.ts';
import { lackedBy } from '../../../ready/rights.ts';
import { listed } from '../../../util/phrases.ts';
import { installsKubernetes } from './installed-version.ts';
import { leaderDrains } from './leader-drain.ts';
import { selects } from './names.ts';

/** What `kubectl drain` reads and writes, whatever its options are. */
const ALWAYS: readonly AccessQuestion[] = [
  { verb: 'get', group: '', resource: 'nodes' },
  { verb: 'patch', group: '', resource: 'nodes' },
  { verb: 'list', group: '', resource: 'pods' },
  { verb: 'get', group: '', resource: 'pods' },
  { verb: 'get', group: 'apps', resource: 'daemonsets' },
];
const EVICT: AccessQuestion = {
  verb: 'create',
  group: '',
  resource: 'pods',
  subresource: 'eviction',
};
const DELETE: AccessQuestion = { verb: 'delete', group: '', resource: 'pods' };

/** Resolves with the ServiceAccounts of Plans that lack a right to drain nodes. */
export async function drainRights({ list, allows }: Asking): Promise<FoundBy[]> {
  const [plans, allNodes, allPods] = await Promise.all([
    list(cattlePlans),
    list(nodes),
    list(pods, { slim: slimPod }),
  ]);
  // In a cluster of another product, such Plans do not upgrade Kubernetes. Other checks say that Nodes cannot be read.
  if (allNodes.kind === 'unknown' || !allNodes.value.some(isOfRancher)) return [];
  if (plans.kind === 'unknown')
    return [{ state: 'unknown', message: `whether Jobs may drain nodes: ${plans.why}` }];
  const leads = allPods.kind === 'answer' && (await isLed(allPods.value, allows));
  const draining = plans.value.filter(
    (plan) => drains(plan) && !(leads && leaderDrains(plan, { drainInJob: false })),
  );
  const found = await Promise.all(draining.map(async (plan) => await planFindings(plan, allows)));
  return grouped(found.flat());
}

/**
 * Resolves with the names of the Nodes that Plans select and no such Plan drains. A Plan for something else, such as the
 * operating system, counts, too: its name does not say what its image does.
 */
export async function undrainedNodes({ list }: Pick<Asking, 'list'>): Promise<ReadonlySet<string>> {
  const [plans, allNodes] = await Promise.all([list(cattlePlans), list(nodes)]);
  if (plans.kind === 'unknown' || allNodes.kind === 'unknown') return new Set();
  const own = allNodes.value.filter((node) => {
    const selecting = plans.value.filter((plan) => selects(plan, node));
    return isOfRancher(node) && selecting.length > 0 && !selecting.some(drains);
  });
  return new Set(own.map(({ metadata }) => metadata.name));
}

function drains({ spec }: CattlePlan): boolean {
  return spec?.drain !== undefined;
}

const COMPONENT = 'system-upgrade-controller';

/**
 * Resolves with true if a leader of Refit runs in the cluster. Whoever may create a pod may give it the labels of a leader,
 * so its account must also have a right that only a leader needs.
 */
async function isLed(all: readonly Pod[], allows: Asking['allows']): Promise<boolean> {
  const leaders = all.filter(
    (pod) => ownComponentOf(pod.metadata) === COMPONENT && !isFinished(pod),
  );
  const mayDrain = await Promise.all(
    leaders.map(async ({ metadata: { namespace = '' }, spec = {} }) => {
      const account = { namespace, name: accountOf(spec) ?? 'default' };
      const lacked = await lackedBy(account, [EVICT], allows);
      return lacked.kind === 'answer' && lacked.value.length === 0;
    }),
  );
  return mayDrain.includes(true);
}

function isOfRancher(node: Node): boolean {
  return /\+(k3s|rke2r)/.test(kubeletVersionOf(node) ?? '');
}

async function planFindings(plan: CattlePlan, allows: Asking['allows']): Promise<FoundBy[]> {
  const { metadata, spec } = plan;
  const { name, namespace = '' } = metadata;
  const account = { namespace, name: spec?.serviceAccountName ?? 'default' };
  const needed = [...ALWAYS, spec?.drain?.disableEviction === true ? DELETE : EVICT];
  const lacked = await lackedBy(account, needed, allows);
  const object = `Plan ${namespace}/${name}`;
  if (lacked.kind === 'unknown')
    return [
      { state: 'unknown', object, message: `whether its Jobs may drain nodes: ${lacked.why}` },
    ];
  const missing = lacked.value.map(nameOf);
  if (missing.length === 0) return [];
  return [
    {
      // A Plan with another image may patch the operating system, or its image may be a mirror with a name of its own.
      state: installsKubernetes(plan) ? 'blocker' : 'warning',
      object,
      message: `its Jobs cannot drain nodes: ServiceAccount ${namespace}/${account.name} may not ${listed(missing)}`,
      cure: 'give the ServiceAccount these rights with a ClusterRole and a ClusterRoleBinding',
    },
  ];
}

function nameOf({ verb, group, resource, subresource }: AccessQuestion): string {
  const what = [resource, subresource].filter((part) => part !== undefined).join('/');
  return `${verb} ${what}${group === '' ? '' : ` of ${group}`}`;
}
