/**
 * Checks whether the target version may follow the present ones, and whether the machines have what its kubelet needs, as
 * far as the Nodes say it.
 */
import {
  keyOf,
  kubeletVersionOf,
  type Node,
  nodes,
  type Pod,
  pods,
  readyCondition,
} from '../../kube/resources.ts';
import { counted, listed } from '../../util/phrases.ts';
import { isNewerMinor, minorsBetween, parseVersion, type Version } from '../../util/version.ts';
import { HOST_REQUIREMENTS, K0S_MOST_BEHIND } from '../../versions/data/by-hand.ts';
import { factsOf, NEWEST_KNOWN, nearestFactsOf, OLDEST_KNOWN } from '../../versions/facts.ts';
import type { Finding, RuleName } from '../../versions/findings.ts';
import { refusesCgroupV1 } from '../../versions/k0s-rules.ts';
import {
  brokenStep,
  etcdFacts,
  etcdFindings,
  type NodeFacts,
  nodeFindings,
} from '../../versions/kubeadm-rules.ts';
import { equallyPrecise, isSameVersion, mayBeSameVersion } from '../../versions/release-parts.ts';
import { allowedBehind } from '../../versions/version-rules.ts';
import type { Check, ReadyContext } from '../context.ts';
import { type FoundBy, grouped, unansweredIn } from '../finding.ts';
import { slimPod } from '../pods.ts';
import { cureForUnknown } from './settings.ts';

export const checkVersions: Check = async (context) => {
  const { to, list } = context;
  const [servers, allNodes, allPods, told] = await Promise.all([
    serverVersions(context),
    list(nodes),
    list(pods, { slim: slimPod }),
    cgroupsTold(context),
  ]);
  const unread = [...servers.unread, ...unansweredIn([allNodes, allPods])];
  const found = [
    ...targetFindings(to),
    ...serverFindings(servers.versions, to),
    ...(allNodes.kind === 'answer' ? nodesFindings(allNodes.value, to, told) : []),
    ...(allPods.kind === 'answer' ? memberFindings(allPods.value, to) : []),
  ];
  if (found.length + unread.length > 0) return [...found, ...unread];
  const now = [...new Set(servers.versions.map(({ version }) => version))];
  const kubelets = allNodes.kind === 'answer' ? allNodes.value.map(kubeletVersionOf) : [];
  return [
    { state: 'ok', message: runsAlready(now, kubelets, to) ?? `${to} may follow ${listed(now)}` },
  ];
};

/**
 * Returns what to say if the target is what the whole cluster reports already. Parts of k0s do not report the build of their
 * release, so several releases report the same. Returns undefined if any part reports another version.
 */
function runsAlready(
  servers: readonly string[],
  kubelets: readonly (string | undefined)[],
  to: string,
): string | undefined {
  const reported = [...new Set([...servers, ...kubelets])];
  if (!reported.every((each) => each !== undefined && mayBeSameVersion(each, to))) return undefined;
  const isSure = reported.every((each) => each !== undefined && isSameVersion(each, to));
  const found = listed(reported.map((each) => each ?? ''));
  return isSure
    ? `each API server and each kubelet runs ${to} already`
    : `each API server and each kubelet reports ${found}, so ${to} may run already`;
}

/** What to do about a rule, without a manifest of `refit kubeadm`, whose fields lift some rules. */
const CURES: Partial<Readonly<Record<RuleName, string>>> = {
  etcd: 'bring each member of etcd to a version from which this step is allowed',
  containerd: 'upgrade containerd on it first',
  kernel: 'boot it with another kernel',
};

/** Returns the finding for a rule of versions or hosts that is not kept. */
function findingOfRule({ rule, severity, message }: Finding): FoundBy {
  if (severity === 'warn') return { state: 'warning', message };
  const cure = CURES[rule];
  return { state: 'blocker', message, ...(cure !== undefined && { cure }) };
}

/** Resolves with the names of the Nodes whose hosts say whether they use cgroup v1. */
async function cgroupsTold({ dialects, ...asking }: ReadyContext): Promise<ReadonlySet<string>> {
  const found = await Promise.all(
    dialects.map(async (each) => [...((await each.cgroupsTold?.(asking)) ?? [])]),
  );
  return new Set(found.flat());
}

interface ServerVersion {
  readonly server: string;
  readonly version: string;
}

async function serverVersions({ askServers }: ReadyContext) {
  const answers = await askServers('/version');
  const versions: ServerVersion[] = [];
  const unread: FoundBy[] = [];
  for (const { server, answer } of answers) {
    const object = `API server ${server}`;
    if (answer.kind === 'unknown')
      unread.push({ state: 'unknown', object, message: `its version: ${answer.why}` });
    else
      versions.push({ server, version: /"gitVersion": *"([^"]*)"/.exec(answer.value)?.[1] ?? '' });
  }
  return { versions, unread };
}

function targetFindings(to: string): FoundBy[] {
  const target = parseVersion(to);
  const findings: FoundBy[] = [];
  if (target !== undefined && target.pre !== '')
    findings.push({ state: 'warning', message: `${to} is a pre-release` });
  if (factsOf(to) === undefined)
    findings.push({
      state: 'unknown',
      message: `this Refit does not know the rules of ${to}; it knows those of 1.${OLDEST_KNOWN} to 1.${NEWEST_KNOWN}`,
      cure: cureForUnknown(to),
    });
  return findings;
}

function serverFindings(servers: readonly ServerVersion[], to: string): FoundBy[] {
  const target = parseVersion(to);
  const findings = servers.flatMap(({ server, version }): FoundBy[] => {
    const object = `API server ${server}`;
    const now = parseVersion(version);
    if (now === undefined || target === undefined)
      return [{ state: 'unknown', object, message: `its version ${version} cannot be read` }];
    const other = otherProduct(now, target, to);
    // Proxies and simulations of an API server do not name the product, so only another name counts.
    if (other !== undefined && productOf(now) !== undefined)
      return [{ state: 'blocker', object, message: `its version ${version} ${other}`, cure: SAME }];
    const broken = brokenStep(...equallyPrecise(now, target), { from: version, to });
    if (broken === undefined) return [];
    return [
      { state: 'blocker', object, message: `it ${broken.message}`, cure: stepCure(now, target) },
    ];
  });
  const read = servers.flatMap(({ server, version }) => {
    const now = parseVersion(version);
    return now === undefined ? [] : [{ server, version, minor: `${now.major}.${now.minor}` }];
  });
  if (new Set(read.map(({ minor }) => minor)).size > 1)
    findings.push({
      state: 'blocker',
      object: `API server ${listed(read.map(({ server }) => server))}`,
      message: `they have different minor versions: ${listed(read.map(({ server, version }) => `${server} has ${version}`))}`,
      cure: 'finish the upgrade that is under way first',
    });
  return findings;
}

/** Says what to do about a step that skips minor versions or goes down. */
function stepCure(now: Version, target: Version): string {
  if (target.major > now.major)
    return `upgrade to the last minor version of Kubernetes ${now.major} first`;
  return isNewerMinor(target, now)
    ? `upgrade to ${listed(minorsBetween(now, target), 9)} first`
    : 'choose the version that the cluster has, or a later one; `refit rollback` undoes an upgrade';
}

const SAME = 'choose a version of the product that runs there';

/** A product that names itself in the versions of its kubelets. Nodes of kubeadm name none. */
interface Product {
  readonly name: string;
  /** The beginning of the build in its versions. */
  readonly build: string;
  /** True if each of its versions brings its own containerd. */
  readonly bringsContainerd?: true;
}

const K0S: Product = { name: 'k0s', build: 'k0s', bringsContainerd: true };

const PRODUCTS: readonly Product[] = [
  K0S,
  { name: 'K3s', build: 'k3s', bringsContainerd: true },
  { name: 'RKE2', build: 'rke2r', bringsContainerd: true },
  { name: 'EKS', build: 'eks' },
  { name: 'GKE', build: 'gke' },
];

/** Returns the product that makes the version. Undefined if the version names none, as those of Kubernetes itself. */
function productOf(version: Version): Product | undefined {
  return PRODUCTS.find(({ build }) => version.build.startsWith(build));
}

/** Returns how the version differs from a target of another product, as the rest of a sentence. Undefined if it does not differ. */
function otherProduct(now: Version, target: Version, to: string): string | undefined {
  const own = productOf(now)?.name;
  const wanted = productOf(target)?.name;
  // A target without a build stands for the version of any product.
  if (target.build === '' || own === wanted) return undefined;
  if (own === undefined) return `is not of ${wanted}, as ${to} is`;
  return wanted === undefined
    ? `is of ${own}, and ${to} is not`
    : `is of ${own}, and ${to} of ${wanted}`;
}

function nodesFindings(all: readonly Node[], to: string, told: ReadonlySet<string>): FoundBy[] {
  const found = all.flatMap((node) => {
    const { name } = node.metadata;
    const problems = [
      ...nodeProblems(node, to),
      ...(told.has(name) ? [] : cgroupQuestion(node, to)),
    ];
    return problems.map((problem) => ({ ...problem, object: `Node ${name}` }));
  });
  return grouped(found);
}

/**
 * Returns a question if this step brings the first kubelet to the host that does not start on cgroup v1. A later kubelet
 * that runs has proved that it may. The Node does not say which version of cgroups its host has.
 */
function cgroupQuestion(node: Node, to: string): FoundBy[] {
  const kubelet = parseVersion(kubeletVersionOf(node));
  const target = parseVersion(to);
  if (kubelet === undefined || target === undefined || isWindows(node)) return [];
  if (refusesCgroupV1(kubelet) || !refusesCgroupV1(target)) return [];
  return [
    {
      state: 'unknown',
      message: `a kubelet of 1.${HOST_REQUIREMENTS.cgroupV1IsRefused} or later does not start on cgroup v1, and nobody says which version of cgroups its host has`,
      cure: 'run `stat -fc %T /sys/fs/cgroup` on the host: `cgroup2fs` is cgroup v2. The metric kubelet_cgroup_version of its kubelet says it, too',
    },
  ];
}

function isWindows({ status }: Node): boolean {
  return status?.nodeInfo?.operatingSystem === 'windows';
}

function nodeProblems(node: Node, to: string): FoundBy[] {
  const target = parseVersion(to);
  const kubeletVersion = kubeletVersionOf(node);
  const kubelet = parseVersion(kubeletVersion);
  const problems: FoundBy[] = [];
  if (readyCondition(node)?.status !== 'True')
    problems.push({
      state: 'warning',
      message: 'it is not Ready',
      cure: 'make it Ready, or remove it from the cluster',
    });
  if (kubelet === undefined || target === undefined)
    return [
      ...problems,
      {
        state: 'unknown',
        message:
          kubeletVersion === undefined
            ? 'its kubelet has not reported a version'
            : `the version of its kubelet cannot be read (${kubeletVersion})`,
      },
    ];
  if (isNewerMinor(kubelet, target))
    problems.push({
      state: 'blocker',
      message: `its kubelet ${kubeletVersion} is newer than ${to}: a kubelet must not be newer than an API server`,
      cure: 'choose a later version',
    });
  const other = otherProduct(kubelet, target, to);
  if (other !== undefined)
    problems.push({
      // Virtual Nodes name no product, whatever the product of the cluster is.
      state: productOf(kubelet) === undefined ? 'warning' : 'blocker',
      message: `the version of its kubelet ${kubeletVersion} ${other}`,
      cure: SAME,
    });
  const mostBehind = productOf(kubelet) === K0S ? K0S_MOST_BEHIND : allowedBehind(kubelet);
  if (target.minor - kubelet.minor > mostBehind)
    problems.push({
      state: 'blocker',
      message: `its kubelet ${kubeletVersion} may be at most ${counted(mostBehind, 'minor version')} older than an API server of ${to}`,
      cure: 'upgrade the kubelet first',
    });
  return [...problems, ...machineProblems(node, kubelet, target)];
}

function machineProblems(node: Node, kubelet: Version, target: Version): FoundBy[] {
  const { kernelVersion, containerRuntimeVersion = '' }: NodeInfo = node.status?.nodeInfo ?? {};
  const [name, runtime] = containerRuntimeVersion.split('://');
  const product = productOf(kubelet);
  const bringsOwn = product?.bringsContainerd === true;
  // The list of kernels is one of kubeadm, and kubelets do not look at it.
  const isOfKubeadm = product === undefined && !isWindows(node);
  const facts: NodeFacts = {
    // A simulated node reports an empty text.
    ...(isOfKubeadm &&
      kernelVersion && { kernel: /^\d+\.\d+/.exec(kernelVersion)?.[0] ?? kernelVersion }),
    ...(name === 'containerd' && !bringsOwn && runtime && { containerd: runtime }),
  };
  return [...nodeFindings(facts, target)].map(findingOfRule);
}

interface NodeInfo {
  readonly kernelVersion?: string | undefined;
  readonly containerRuntimeVersion?: string;
}

/** Judges the members of etcd that run as static pods, as kubeadm starts them. */
function memberFindings(all: readonly Pod[], to: string): FoundBy[] {
  const own = all.filter(
    ({ metadata: { namespace, labels = {} } }) =>
      namespace === 'kube-system' && labels['component'] === 'etcd',
  );
  const members = own.map((pod) => ({ pod, ...memberOf(pod) }));
  const readable = new Set(members.flatMap(({ version }) => version ?? []));
  const facts = etcdFacts([...readable], to);
  const unread = members.flatMap(({ pod, image, version }): FoundBy[] =>
    version !== undefined || nearestFactsOf(to) === undefined
      ? []
      : [
          {
            state: 'unknown',
            object: `Pod ${keyOf(pod)}`,
            message: `which version of etcd it runs: ${image === undefined ? 'no container of it is called etcd' : `its image ${image} does not say it`}`,
            cure: 'ask each member with `etcdctl endpoint status`',
          },
        ],
  );
  const judged = etcdFindings(facts).map((each) => ({ ...findingOfRule(each), object: 'etcd' }));
  return [...judged, ...grouped(unread)];
}

/** Returns the image of the container that is etcd, and the version in the tag of the image. Other containers are no members. */
function memberOf({ spec }: Pod): { readonly image?: string; readonly version?: string } {
  const image = spec?.containers?.find(({ name }) => name === 'etcd')?.image;
  if (image === undefined) return {};
  // The tag comes after the last part of the path, and before the digest. A port comes before the path.
  const last = image.split('@', 1)[0]?.split('/').at(-1) ?? '';
  const tag = last.includes(':') ? last.slice(last.indexOf(':') + 1) : undefined;
  return { image, ...(parseVersion(tag) !== undefined && tag !== undefined && { version: tag }) };
}
