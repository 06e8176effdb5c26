/** Looks at a cluster after an upgrade: in the API, in etcd, and on every host. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Node } from '../../../src/kube/resources.ts';
import { messageOf } from '../../../src/util/errors.ts';
import { type Checks, differing } from '../checks.ts';
import type { Machine } from '../machines/machine.ts';
import { until } from '../wait.ts';
import type { Cluster, Way } from './cluster.ts';
import { etcdMembers, etcdStatus } from './etcd.ts';
import type { Operator } from './operator.ts';

const CORDON_MARK = 'upgrade.refit.dev/cordoned-by';
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

const staticPodsOf = ({ hasMembers }: Way): string[] => [
  ...COMPONENTS,
  ...(hasMembers ? ['etcd'] : []),
];

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly containers: readonly { readonly image: string }[] };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Workload {
  readonly spec: { readonly replicas?: number; readonly template: Pick<Pod, 'spec'> };
  readonly status: Readonly<Record<string, number | undefined>>;
}

/** Checks the cluster. `workersAt` is the version that the workers keep while the control planes are upgraded further. */
export async function verify(
  title: string,
  checks: Checks,
  cluster: Cluster,
  operator: Operator,
  version: string,
  workersAt: string = version,
): Promise<void> {
  const { hasMembers, hasProxy } = cluster.way;
  const check: Checks['check'] = async (name, look) =>
    await checks.check(`${title}: ${name}`, look);
  const versionOf = (machine: Machine): string =>
    cluster.workers.includes(machine) ? workersAt : version;
  await verifyNodes(check, cluster, operator);
  await check(
    `every kubelet runs ${[...new Set([version, workersAt])].join(', or on workers ')}`,
    async () => await kubeletVersions(cluster, operator, versionOf),
  );
  await check(
    `static pods run ${version} and are ready`,
    async () => await staticPods(cluster, operator, version),
  );
  if (hasProxy)
    await check(
      'kube-proxy and CoreDNS are rolled out',
      async () => await rolledOut(operator, version),
    );
  await check(`kubeadm-config says ${version}`, async () => {
    const { data } = await operator.get<{ data: { ClusterConfiguration: string } }>(
      'configmap',
      'kubeadm-config',
    );
    const { kubernetesVersion } = parse(data.ClusterConfiguration) as { kubernetesVersion: string };
    return differing({ kubeadmVersion: kubernetesVersion }, version);
  });
  if (hasMembers)
    await check(
      'etcd has all its members, and each is healthy',
      async () => await etcdIsWhole(cluster),
    );
  for (const machine of cluster.machines.filter((each) => versionOf(each) === version)) {
    const title = `${machine.name}: binaries, journal and manifests`;
    await check(title, async () => await hostIsDone(machine, cluster, version));
  }
}

async function verifyNodes(check: Checks['check'], cluster: Cluster, operator: Operator) {
  const { items } = await operator.get<{ items: Node[] }>('nodes');
  const each = (look: (node: Node) => unknown, expected: unknown): string[] =>
    differing(Object.fromEntries(items.map((node) => [node.metadata.name, look(node)])), expected);
  const isCordoned = ({ spec, metadata }: Node): boolean =>
    spec?.unschedulable === true || CORDON_MARK in (metadata.annotations ?? {});
  await check('every machine has its Node', () =>
    differing({ Nodes: items.length }, cluster.machines.length),
  );
  await check('every Node is Ready', () => each(isReady, true));
  await check('no cordon is left, and no mark of one', () => each(isCordoned, false));
}

async function kubeletVersions(
  { machines, way }: Cluster,
  operator: Operator,
  versionOf: (machine: Machine) => string,
): Promise<string[]> {
  const { items } = await operator.get<{ items: Node[] }>('nodes');
  return machines.flatMap((machine) => {
    const name = way.nodeName(machine);
    const found = items.find(({ metadata }) => metadata.name === name)?.status?.nodeInfo
      ?.kubeletVersion;
    return differing({ [name]: found }, versionOf(machine));
  });
}

/**
 * Waits until the static pods are ready. The kubelet was restarted a moment ago, so its probes must succeed once more.
 */
export async function staticPods(
  cluster: Cluster,
  operator: Operator,
  version: string,
): Promise<string[]> {
  let wrong: string[] = [];
  await until('static pods to be ready', 300, async () => {
    wrong = await staticPodsNow(cluster, operator, version);
    return wrong.length === 0;
  }).catch((error: unknown) => wrong.push(messageOf(error)));
  return wrong;
}

async function staticPodsNow(
  { controlPlanes, way }: Cluster,
  operator: Operator,
  version: string,
): Promise<string[]> {
  const names = controlPlanes.flatMap((machine) =>
    staticPodsOf(way).map((name) => `${name}-${way.nodeName(machine)}`),
  );
  const wrong = await Promise.all(
    names.map(async (name) => {
      const { spec, status } = await operator.get<Pod>('pod', name);
      const image = spec.containers[0]?.image ?? '';
      const isReady =
        status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
      return [
        ...(isReady ? [] : [`${name} is not ready`]),
        ...(name.startsWith('etcd-') || image.endsWith(`:${version}`)
          ? []
          : [`${name} runs ${image}`]),
      ];
    }),
  );
  return wrong.flat();
}

/** Waits until kube-proxy and CoreDNS are rolled out. When kubeadm has ended, both may still be rolling out. */
export async function rolledOut(operator: Operator, version: string): Promise<string[]> {
  let image = '';
  await until('kube-proxy and CoreDNS to be rolled out', 300, async () => {
    const proxy = await operator.get<Workload>('daemonset', 'kube-proxy');
    const dns = await operator.get<Workload>('deployment', 'coredns');
    image = proxy.spec.template.spec.containers[0]?.image ?? '';
    const {
      desiredNumberScheduled: wanted,
      updatedNumberScheduled: updated,
      numberReady: ready,
    } = proxy.status;
    return (
      wanted === updated && wanted === ready && dns.status['readyReplicas'] === dns.spec.replicas
    );
  });
  return image.endsWith(`:${version}`) ? [] : [`kube-proxy runs ${image}`];
}

/** Waits until all Nodes are Ready, because the Nodes of a new cluster need some time. */
export async function settled(cluster: Cluster, operator: Operator): Promise<void> {
  await until('all Nodes to be Ready', 300, async () => {
    const { items } = await operator.get<{ items: Node[] }>('nodes');
    return items.length === cluster.machines.length && items.every(isReady);
  });
}

const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some(({ type, status: now }) => type === 'Ready' && now === 'True') === true;

async function etcdIsWhole({ controlPlanes }: Cluster): Promise<string[]> {
  const wrong: string[] = [];
  const leaders = new Set<string>();
  for (const machine of controlPlanes) {
    const { members = [] } = await etcdMembers(machine);
    const names = members
      .map(({ name = '' }) => name)
      .toSorted()
      .join();
    const expected = controlPlanes.map(({ name }) => name).join();
    if (names !== expected)
      wrong.push(`${machine.name} knows the members ${names}, not ${expected}`);
    const { leader = '', errors = [] } = await etcdStatus(machine);
    leaders.add(leader);
    if (errors.length > 0) wrong.push(`${machine.name}: ${errors.join()}`);
  }
  if (leaders.size !== 1 || leaders.has(''))
    wrong.push(`the members know the leaders ${[...leaders].join()}`);
  return wrong;
}

async function hostIsDone(
  machine: Machine,
  { controlPlanes, way }: Cluster,
  version: string,
): Promise<string[]> {
  const kubeadm = (await machine.must('kubeadm version -o short')).trim();
  const kubelet = (await machine.must('kubelet --version')).trim();
  const kubectl = (await machine.must('kubectl version --client')).split('\n')[0];
  // A host on which nothing was done has no journal.
  const text = await readFile(join(machine.root, 'var/lib/refit/kubeadm.journal'), 'utf8').catch(
    () => '',
  );
  const journal = text.trim().split('\n');
  // Only the steps of the last run count, because a failed run was replaced by the next run.
  const last = journal.at(-1)?.split(' ')[0] ?? '';
  const unended = journal.filter(
    (line) =>
      line.startsWith(last) &&
      line.endsWith(' begun') &&
      !journal.includes(line.replace(/begun$/, 'done')),
  );
  const manifests = (
    await readdir(join(machine.root, 'etc/kubernetes/manifests')).catch(() => [])
  ).toSorted((a, b) => a.localeCompare(b));
  const expected = controlPlanes.includes(machine)
    ? staticPodsOf(way).map((name) => `${name}.yaml`)
    : [];
  return [
    ...differing({ kubeadm }, version),
    ...differing({ kubelet }, `Kubernetes ${version}`),
    ...differing({ kubectl }, `Client Version: ${version}`),
    ...unended.map((line) => `the journal has "${line}" and not its end`),
    ...differing(
      { manifests: manifests.join() },
      expected.toSorted((a, b) => a.localeCompare(b)).join(),
    ),
  ];
}
