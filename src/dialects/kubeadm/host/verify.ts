/**
 * Checks the result of an upgrade. For each component of a host and of the cluster, the result says what was found and
 * what a person should do.
 */
import type { KubeClient } from '../../../kube/client.ts';
import * as kube from '../../../kube/resources.ts';
import { type Clock, sleep } from '../../../util/clock.ts';
import { KUBELET_LOG } from '../../../util/kubelet-log.ts';
import { ownMember } from '../../../util/own-member.ts';
import { parseVersion } from '../../../util/version.ts';
import { isNeeded } from '../../../versions/version-rules.ts';
import { dateOf, endingSoon } from './certificates.ts';
import { etcdProblems } from './etcd.ts';
import type { Host, Part } from './host.ts';
import { answersOf, type HostFacts, tagOf } from './probe.ts';

export interface Check {
  readonly component: string;
  readonly found: string;
  /** What a person should do about the problem; undefined if there is no problem. */
  readonly cure?: string;
}

const ASK_AGAIN_MS = 1000;
export const STATIC_PODS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

export interface HostState {
  readonly facts: HostFacts;
  readonly node: kube.Node | undefined;
  readonly pods: readonly kube.Pod[];
}

export async function controlPlanePods(client: KubeClient): Promise<readonly kube.Pod[]> {
  const { items } = await client.listAll(kube.pods, {
    namespace: 'kube-system',
    labelSelector: 'tier=control-plane',
  });
  return items;
}

export function hostChecks(
  state: HostState,
  version: string,
  parts: readonly Part[],
  now: number,
): Check[] {
  const { host, kubeadm, kubelet } = state.facts;
  const reported = state.node && kube.kubeletVersionOf(state.node);
  const ofKubeadm = [
    ...(host.role === 'controlPlane' ? staticPodChecks(state, version) : []),
    binaryCheck('kubeadm', kubeadm, version),
  ];
  const silent = {
    component: 'kubelet',
    found: `the Node reports ${reported || 'no version'}`,
    cure: KUBELET_LOG,
  };
  const isSilent = isAt(kubelet, version) && !isAt(reported, version);
  return [
    ...(parts.some((part) => part !== 'kubelet') ? ofKubeadm : []),
    ...(parts.includes('kubelet')
      ? [isSilent ? silent : binaryCheck('kubelet', kubelet, version)]
      : []),
    ...certificateChecks(state.facts, now),
  ];
}

/** Checks the static pods of a control-plane host. If `version` is undefined, each pod must have the version in its manifest. */
export function staticPodChecks(state: HostState, version?: string): Check[] {
  const hasEtcd = wantedOf('etcd', state.facts) !== undefined;
  const names = [...STATIC_PODS, ...(hasEtcd ? ['etcd'] : [])];
  return names.map((name) => podCheck(name, state, version));
}

export function isAt(found: string | undefined, version: string): boolean {
  return found !== undefined && parseVersion(found) !== undefined && !isNeeded([found], version);
}

function binaryCheck(component: string, found: string | undefined, version: string): Check {
  if (isAt(found, version)) return { component, found: version };
  return {
    component,
    found: found ?? 'no version',
    cure: `expected ${version}; upgrade the host again`,
  };
}

/** Returns the version in the manifest of a component, or the whole image if its tag is not a version. */
function wantedOf(
  component: string,
  { staticPods, unreadImages = {} }: HostFacts,
): string | undefined {
  return ownMember(staticPods, component) ?? ownMember(unreadImages, component);
}

function podCheck(component: string, { facts, pods: all }: HostState, version?: string): Check {
  const { name } = facts.host;
  const wanted = wantedOf(component, facts);
  if (version !== undefined && component !== 'etcd' && !isAt(wanted, version))
    return binaryCheck(component, wanted, version);
  const pod = podOf(all, name, component);
  if (!pod)
    return { component, found: 'the API server has no pod of this component', cure: KUBELET_LOG };
  const image = imageOf(pod.spec, component);
  const tag = tagOf(image) ?? image;
  if (tag !== wanted)
    return { component, found: `its pod still has ${tag || 'no image'}`, cure: KUBELET_LOG };
  if (kube.readyCondition(pod)?.status === 'True') return { component, found: tag };
  return { component, found: 'its pod is not ready', cure: logsOf(pod) };
}

/**
 * Returns the image of a component in its pod; empty if no container is the component. Somebody may have added other
 * containers to the pod, in any order. So the component is the container with its name, or else the container that
 * runs its program, as in `container_of` of prelude.sh. The only container of a pod is always the component.
 */
function imageOf(spec: kube.Pod['spec'], component: string): string {
  const all = spec?.containers ?? [];
  const own =
    all.find(({ name }) => name === component) ??
    all.find(({ command: [program] = [] }) => program?.split('/').at(-1) === component) ??
    (all.length === 1 ? all[0] : undefined);
  return own?.image ?? '';
}

const logsOf = ({ metadata: { name } }: kube.Pod): string =>
  `see kubectl -n kube-system logs ${name}`;

/** Returns a sentence for each static pod of the host that the kubelet restarts again and again. */
export function crashLoops({ name, role }: Host, pods: readonly kube.Pod[]): string[] {
  if (role !== 'controlPlane') return [];
  return [...STATIC_PODS, 'etcd'].flatMap((component) => {
    const pod = podOf(pods, name, component);
    const isLooping = pod?.status?.containerStatuses?.some(
      ({ state }) => state?.waiting?.reason === 'CrashLoopBackOff',
    );
    return pod && isLooping === true
      ? [`${component} crashes again and again; ${logsOf(pod)}`]
      : [];
  });
}

export function podOf(
  all: readonly kube.Pod[],
  node: string,
  component: string,
): kube.Pod | undefined {
  return all.find(
    ({ metadata, spec }) => spec?.nodeName === node && metadata.labels?.['component'] === component,
  );
}

/**
 * Returns one check with the first certificate that has expired. If no certificate has expired, the check shows when
 * the first of them will expire. Returns no check if the host has no certificate.
 */
function certificateChecks(facts: HostFacts, now: number): Check[] {
  const leaves = facts.certificates
    .filter(({ isAuthority }) => !isAuthority)
    .map(({ until }) => until);
  const ended = facts.certificates.filter(({ until }) => until < now);
  const [wrong] = endingSoon(ended, now, false);
  const component = 'certificates';
  if (wrong) return [{ component, ...wrong }];
  return leaves.length === 0 ? [] : [{ component, found: `until ${dateOf(Math.min(...leaves))}` }];
}

export interface Workload extends kube.KubeObject {
  spec?: {
    replicas?: number;
    template?: Pick<kube.Pod, 'spec'>;
    updateStrategy?: { type?: string };
  };
  status?: Readonly<Record<string, number | undefined>>;
}

export const ADDONS = [
  { resource: kube.namespaced<Workload>('apps/v1', 'DaemonSet'), name: 'kube-proxy' },
  { resource: kube.namespaced<Workload>('apps/v1', 'Deployment'), name: 'coredns' },
] as const;

export function absentOf(nodes: readonly kube.Node[]): string[] {
  return nodes
    .filter((node) => kube.readyCondition(node)?.status !== 'True')
    .map(({ metadata }) => metadata.name);
}

/**
 * Checks whether the pods of an addon have rolled out. `version` is undefined if any version is
 * right. `absent` names the Nodes that need no pod.
 */
export function addonCheck(
  workload: Workload,
  kind: string,
  version?: string,
  absent: readonly string[] = [],
): Check {
  const { spec, status = {} } = workload;
  const { name: component, generation = 0 } = workload.metadata;
  const wanted = status['desiredNumberScheduled'] ?? spec?.replicas ?? 0;
  const updated = status['updatedNumberScheduled'] ?? status['updatedReplicas'] ?? 0;
  const ready = Math.min(updated, status['numberAvailable'] ?? status['availableReplicas'] ?? 0);
  const tag = tagOf(imageOf(spec?.template?.spec, component)) ?? 'no version';
  const left =
    absent.length > 0 ? ` (not Ready and not in the manifest: ${absent.join(', ')})` : '';
  const found = `${tag} on ${ready} of ${wanted} pods${left}`;
  if (version !== undefined && !isAt(tag, version)) {
    const cure = `expected ${version}; run kubeadm upgrade apply phase addon ${component} ${version}`;
    return { component, found, cure };
  }
  const isSeen = (status['observedGeneration'] ?? 0) >= generation;
  if (isSeen && ready >= wanted - absent.length) return { component, found };
  return {
    component,
    found,
    cure: `see kubectl -n kube-system rollout status ${kind.toLowerCase()}/${component}`,
  };
}

export function etcdChecks(hosts: readonly HostFacts[]): Check[] {
  const answers = answersOf(hosts);
  const asked = [...answers.values()].filter((answer) => answer !== false);
  if (asked.length === 0) return [];
  const problems = etcdProblems(answers).map((problem) => ({ component: 'etcd', ...problem }));
  return problems.length > 0
    ? problems
    : [{ component: 'etcd', found: `${asked.length} healthy members` }];
}

export function problemsOf(checks: readonly Check[]): string[] {
  return checks.flatMap(({ component, found, cure }) =>
    cure === undefined ? [] : [`${component}: ${found}; ${cure}`],
  );
}

/** Repeats `ask` until `isRight` accepts its answer, or until the time is over. Resolves with the last answer. */
export async function untilRight<T>(
  ask: () => Promise<T>,
  isRight: (answer: T) => boolean,
  {
    clock,
    abort,
    withinMs,
  }: { readonly clock: Clock; readonly abort: AbortSignal; readonly withinMs: number },
): Promise<T> {
  const deadline = clock.monotonic() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isRight(answer) || clock.monotonic() >= deadline) return answer;
    await sleep(clock, ASK_AGAIN_MS, abort);
  }
}
