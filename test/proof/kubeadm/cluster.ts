/** Makes a cluster with kubeadm, as its documentation describes: one control plane, more control planes, then workers. */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { must } from '../../../tools/release/commands.ts';
import { Balancer, type BalancerPorts } from '../machines/balancer.ts';
import { KUBELET_CONFIGURATION, onVersion1 } from '../machines/kernel.ts';
import { Machine, NETWORK } from '../machines/machine.ts';
import { OPERATOR } from '../machines/namespaces.ts';
import { until } from '../wait.ts';
import { furnish } from './furnish.ts';
import { archiveOf, imageNames, REPOSITORY } from './images/kubernetes.ts';

/** The address from which the load balancer probes the API servers. */
export const BALANCER = `${NETWORK}.2`;

export interface ClusterOptions {
  readonly controlPlanes: number;
  readonly workers: number;
  readonly from: string;
  /** The versions that the machines offer in addition to `from`, from low to high. */
  readonly offers: readonly string[];
  readonly directory: string;
  readonly parts: string;
  readonly group: string;
  readonly log: (line: string) => void;
  readonly way: Way;
}

/** How a cluster is made, and what the checks of the cluster must know about it. */
export interface Way {
  /** The ports of the load balancer and of each API server. */
  readonly ports: BalancerPorts;
  /** Lines of /etc/hosts in addition to those of the machines. */
  readonly names: string;
  /** The folder that contains the binaries of Kubernetes. */
  readonly folder: string;
  /** Returns the name of the Node of a machine. */
  readonly nodeName: (machine: Machine) => string;
  /** Whether control planes have members of etcd. */
  readonly hasMembers: boolean;
  readonly hasProxy: boolean;
  /** Makes the cluster with kubeadm on machines that already run. */
  readonly make: (cluster: Cluster, options: ClusterOptions) => Promise<void>;
}

export interface Cluster {
  readonly controlPlanes: readonly Machine[];
  readonly workers: readonly Machine[];
  readonly machines: readonly Machine[];
  /** Private key of the operator. */
  readonly identity: string;
  /** The administrator's kubeconfig on this machine. */
  readonly kubeconfig: string;
  readonly way: Way;
  /**
   * Replaces a machine that is off by a new machine with the same name and address. The new machine keeps nothing else
   * of the old machine.
   */
  readonly replace: (machine: Machine) => Promise<void>;
}

/** Makes a cluster for `work`, and removes it when `work` ends. Makes the folder of the cluster, too. */
export async function withCluster(
  options: ClusterOptions,
  work: (cluster: Cluster) => Promise<void>,
): Promise<void> {
  const { directory, way } = options;
  await mkdir(directory);
  const cluster = await startMachines(options);
  const addresses = cluster.controlPlanes.map(({ address }) => address);
  await using balancer = new Balancer(addresses, way.ports, BALANCER);
  await balancer.start(OPERATOR);
  await way.make(cluster, options);
  await work(cluster);
  for (const machine of cluster.machines) await machine.powerOff();
  await rm(directory, { recursive: true });
}

const numbered = (name: string, count: number, first: number) =>
  Array.from({ length: count }, (_, index) => ({
    name: `${name}${index + 1}`,
    number: first + index,
  }));

/** Starts the machines, with everything that kubeadm needs. */
async function startMachines(options: ClusterOptions): Promise<Cluster> {
  const { directory, parts, group, way } = options;
  const make = ({ name, number }: { name: string; number: number }): Machine =>
    new Machine({ name, number, directory: join(directory, name), parts, group });
  const controlPlanes = numbered('cp', options.controlPlanes, 11).map(make);
  const workers = numbered('w', options.workers, 21).map(make);
  const machines = [...controlPlanes, ...workers];
  const identity = join(directory, 'identity');
  await must('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
  const hosts = machines.map(({ address, name }) => `${address} ${name}\n`).join('') + way.names;
  const versions = [options.from, ...options.offers];
  const images = [
    ...new Set((await Promise.all(versions.map((each) => imageNames(parts, each)))).flat()),
  ];
  const start = async (machine: Machine): Promise<void> => {
    const hostKey = join(directory, `host-key-${machine.name}`);
    await must('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
    await mkdir(join(directory, machine.name));
    await machine.create();
    await furnish(machine, {
      parts,
      version: options.from,
      offers: options.offers,
      sandbox: images.find((name) => name.includes('/pause:')) ?? '',
      hosts,
      authorized: await readFile(`${identity}.pub`, 'utf8'),
      hostKey,
      folder: way.folder,
    });
    await machine.powerOn();
    const isControlPlane = controlPlanes.includes(machine);
    await importImages(
      machine,
      images.filter((name) => isControlPlane || /\/(?:pause|kube-proxy|coredns):/.test(name)),
    );
    options.log(`${machine.name} runs`);
  };
  const replace = async (machine: Machine): Promise<void> => {
    for (const name of [machine.name, `host-key-${machine.name}`])
      await rm(join(directory, name), { recursive: true });
    await start(machine);
  };
  for (const machine of machines) await start(machine);
  return {
    controlPlanes,
    workers,
    machines,
    identity,
    kubeconfig: join(directory, 'admin.conf'),
    way,
    replace,
  };
}

async function importImages(machine: Machine, names: readonly string[]): Promise<void> {
  await until(
    `containerd on ${machine.name}`,
    180,
    async () => (await machine.run('ctr version')).ok,
  );
  for (const name of names)
    await machine.must(`ctr -n k8s.io images import /opt/parts/images/${archiveOf(name)}`);
}

/** A cluster as the documentation of kubeadm describes it. */
export const USUAL: Way = {
  ports: { own: 6443, backend: 6443 },
  names: '',
  folder: '/usr/bin',
  nodeName: ({ name }) => name,
  hasMembers: true,
  hasProxy: true,
  make: makeCluster,
};

async function makeCluster(cluster: Cluster, { from, log }: ClusterOptions): Promise<void> {
  const [first, ...others] = cluster.controlPlanes;
  if (first === undefined) throw new Error('a cluster needs a control plane');
  await writeFile(join(first.root, 'etc/kubeadm.yaml'), configuration(from, first.address));
  await first.must('kubeadm init --config /etc/kubeadm.yaml --upload-certs');
  log(`${first.name} is a control plane`);
  await cp(join(first.root, 'etc/kubernetes/admin.conf'), cluster.kubeconfig);
  const key = (
    await first.must('kubeadm init phase upload-certs --upload-certs --config /etc/kubeadm.yaml')
  )
    .trim()
    .split('\n')
    .at(-1);
  const joining = (await first.must('kubeadm token create --print-join-command')).trim();
  for (const machine of others) {
    await joinAs(
      machine,
      `${joining} --control-plane --certificate-key ${key} --apiserver-advertise-address ${machine.address}`,
    );
    log(`${machine.name} is a control plane`);
  }
  for (const machine of cluster.workers) {
    await joinAs(machine, joining);
    log(`${machine.name} is a worker`);
  }
}

async function joinAs(machine: Machine, command: string): Promise<void> {
  const flags = onVersion1() ? ' --ignore-preflight-errors=SystemVerification' : '';
  await machine.must(`${command}${flags}`);
}

export const PROXY_CONFIGURATION = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  oomScoreAdj: 0,
  conntrack: { maxPerCore: 0, min: 0 },
};

export const documents = (all: readonly object[]): string =>
  all.map((each) => stringify(each)).join('---\n');

export const KUBEADM = 'kubeadm.k8s.io/v1beta4';

function configuration(version: string, address: string): string {
  const ignored = onVersion1() ? ['SystemVerification'] : [];
  return documents([
    {
      apiVersion: KUBEADM,
      kind: 'InitConfiguration',
      localAPIEndpoint: { advertiseAddress: address },
      nodeRegistration: { ignorePreflightErrors: ignored },
    },
    {
      apiVersion: KUBEADM,
      kind: 'ClusterConfiguration',
      kubernetesVersion: version,
      imageRepository: REPOSITORY,
      controlPlaneEndpoint: `${OPERATOR}:6443`,
      networking: { podSubnet: '10.244.0.0/16' },
    },
    // The kubelets request serving certificates from the cluster.
    {
      ...KUBELET_CONFIGURATION,
      serverTLSBootstrap: true,
      ...(onVersion1() ? { failCgroupV1: false } : {}),
    },
    PROXY_CONFIGURATION,
  ]);
}
