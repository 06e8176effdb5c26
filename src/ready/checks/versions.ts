/**
 * Checks whether the target version may follow the present ones, and whether the machines have what its kubelet needs, as
 * far as the Nodes say it.
 */
import {
  kubeletVersionOf,
  type Node,
  nodes,
  type Pod,
  pods,
  readyCondition,
} from '../../kube/resources.ts';
import { counted, listed } from '../../util/phrases.ts';
import { isNewerMinor, minorsBetween, parseVersion } from '../../util/version.ts';
import { K0S_MOST_BEHIND } from '../../versions/data/by-hand.ts';
import { factsOf, NEWEST_KNOWN } from '../../versions/facts.ts';
import {
  brokenStep,
  etcdFacts,
  etcdFindings,
  type NodeFacts,
  nodeFindings,
} from '../../versions/kubeadm-rules.ts';
import { allowedBehind } from '../../versions/version-rules.ts';
import type { Check, ReadyContext } from '../context.ts';
import { type FoundBy, findingByRule, grouped, unansweredIn } from '../finding.ts';
import { slimPod } from '../pods.ts';

export const checkVersions: Check = async (context) => {
  const { to, list } = context;
  const [servers, allNodes, allPods] = await Promise.all([
    serverVersions(context),
    list(nodes),
    list(pods, { slim: slimPod }),
  ]);
  const unread = [...servers.unread, ...unansweredIn([allNodes, allPods])];
  const found = [
    ...targetFindings(to),
    ...serverFindings(servers.versions, to),
    ...(allNodes.kind === 'answer' ? nodesFindings(allNodes.value, to) : []),
    ...(allPods.kind === 'answer' ? memberFindings(allPods.value, to) : []),
  ];
  if (found.length + unread.length > 0) return [...found, ...unread];
  const now = [...new Set(servers.versions.map(({ version }) => version))];
  return [{ state: 'ok', message: `${to} may follow ${listed(now)}` }];
};

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
      message: `this Refit does not know the rules of ${to}; it knows those of versions until 1.${NEWEST_KNOWN}`,
      cure: 'use a newer Refit, and read the changelog of the new version',
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
    const broken = brokenStep(now, target, { from: version, to });
    if (broken === undefined) return [];
    const cure =
      broken.rule === 'Downgrade'
        ? 'choose the version that the cluster has, or a later one'
        : `upgrade to ${listed(minorsBetween(now, target))} first`;
    return [{ state: 'blocker', object, message: `it ${broken.message}`, cure }];
  });
  const minors = new Set(servers.map(({ version }) => parseVersion(version)?.minor));
  if (minors.size > 1)
    findings.push({
      state: 'blocker',
      message: `the API servers have different minor versions: ${listed(servers.map(({ server, version }) => `${server} has ${version}`))}`,
      cure: 'finish the upgrade that is under way first',
    });
  return findings;
}

function nodesFindings(all: readonly Node[], to: string): FoundBy[] {
  const found = all.flatMap((node) =>
    nodeProblems(node, to).map((problem) => ({ ...problem, object: `Node ${node.metadata.name}` })),
  );
  return grouped(found);
}

function nodeProblems(node: Node, to: string): FoundBy[] {
  const target = parseVersion(to);
  const nodeInfo: NodeInfo = node.status?.nodeInfo ?? {};
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
  const isK0s = kubelet.build.startsWith('k0s');
  const mostBehind = isK0s ? K0S_MOST_BEHIND : allowedBehind(kubelet);
  if (target.minor - kubelet.minor > mostBehind)
    problems.push({
      state: 'blocker',
      message: `its kubelet ${kubeletVersion} may be at most ${counted(mostBehind, 'minor version')} older than an API server of ${to}`,
      cure: 'upgrade the kubelet first',
    });
  return [...problems, ...machineProblems(kubelet.build, nodeInfo, to)];
}

interface NodeInfo {
  readonly kernelVersion?: string | undefined;
  readonly containerRuntimeVersion?: string;
}

/** Products that bring their own containerd with each version. */
const BRINGS_CONTAINERD = /^(k0s|k3s|rke2r)/;

function machineProblems(
  build: string,
  { kernelVersion, containerRuntimeVersion = '' }: NodeInfo,
  to: string,
): FoundBy[] {
  const [name, runtime] = containerRuntimeVersion.split('://');
  const isOwn = name === 'containerd' && !BRINGS_CONTAINERD.test(build);
  const facts: NodeFacts = {
    // A simulated node reports an empty text.
    ...(kernelVersion && { kernel: /^\d+\.\d+/.exec(kernelVersion)?.[0] ?? kernelVersion }),
    ...(isOwn && runtime && { containerd: runtime }),
  };
  return [...nodeFindings(facts, parseVersion(to))].map(findingByRule);
}

/** Judges the members of etcd that run as static pods, as kubeadm starts them. */
function memberFindings(all: readonly Pod[], to: string): FoundBy[] {
  const members = all.flatMap(({ metadata: { namespace, labels = {} }, spec }) => {
    if (namespace !== 'kube-system' || labels['component'] !== 'etcd') return [];
    return (
      spec?.containers?.flatMap(
        ({ image = '' }) => image.split('@', 1)[0]?.split(':').at(-1) ?? [],
      ) ?? []
    );
  });
  return etcdFindings(etcdFacts([...new Set(members)], to)).map((finding) => ({
    ...findingByRule(finding),
    object: 'etcd',
  }));
}
