/**
 * Makes a cluster that differs from the usual one wherever kubeadm allows it: folders, ports, names, flags, patches,
 * etcd, and the user who may log in.
 */
import { appendFile, chmod, chown, copyFile, cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KUBELET_CONFIGURATION, onVersion1 } from '../../machines/kernel.ts';
import type { Machine } from '../../machines/machine.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import { until } from '../../wait.ts';
import { type Cluster, type ClusterOptions, documents, KUBEADM, type Way } from '../cluster.ts';
import { REPOSITORY } from '../images/kubernetes.ts';

export const PORTS = { own: 8443, backend: 7443 };
export const SSH_PORT = 2222;
export const ENDPOINT = 'api.example.internal';
export const PATCHES = '/etc/kubernetes/patches';
export const CERTIFICATES = '/etc/pki/kubernetes';
export const USER = { name: 'operator', id: 4000 };
export const MARK = 'example.internal/patched';
export const MOST_PODS = 42;
const ETCD = '/etc/etcd/pki';

export const anotherWay: Way = {
  ports: PORTS,
  names: `${OPERATOR} ${ENDPOINT}\n`,
  folder: '/opt/bin',
  nodeName: ({ name }) => `${name}.nodes.example.internal`,
  hasMembers: false,
  hasProxy: false,
  make,
};

async function make(cluster: Cluster, { from, log }: ClusterOptions): Promise<void> {
  const [first, ...others] = cluster.controlPlanes;
  if (first === undefined) throw new Error('a cluster needs a control plane');
  for (const machine of cluster.machines) await prepare(machine, cluster.identity);
  await startEtcd(first, from);
  await writeFile(join(first.root, 'etc/kubeadm.yaml'), documents(configuration(first, from)));
  await first.must('kubeadm init --config /etc/kubeadm.yaml --upload-certs');
  log(`${first.name} is a control plane with an external etcd`);
  await cp(join(first.root, 'etc/kubernetes/admin.conf'), cluster.kubeconfig);
  const upload = await first.must(
    'kubeadm init phase upload-certs --upload-certs --config /etc/kubeadm.yaml',
  );
  const certificateKey = upload.trim().split('\n').at(-1) ?? '';
  const joining = await first.must('kubeadm token create --print-join-command');
  for (const machine of [...others, ...cluster.workers]) {
    const isControlPlane = others.includes(machine);
    const joined = joinConfiguration(machine, joining, isControlPlane ? certificateKey : undefined);
    await writeFile(join(machine.root, 'etc/kubeadm.yaml'), documents([joined]));
    await machine.must('kubeadm join --config /etc/kubeadm.yaml');
    log(`${machine.name} has joined`);
  }
}

/**
 * Prepares a machine. Root may not log in. The user who may log in has one sudo rule, and sudo has a short PATH. Each
 * host has files with patches.
 */
async function prepare(machine: Machine, identity: string): Promise<void> {
  const at = (path: string): string => join(machine.root, path);
  const home = at(`home/${USER.name}`);
  await appendFile(
    at('etc/passwd'),
    `${USER.name}:x:${USER.id}:${USER.id}::/home/${USER.name}:/bin/sh\n`,
  );
  await appendFile(at('etc/group'), `${USER.name}:x:${USER.id}:\n`);
  await appendFile(at('etc/shadow'), `${USER.name}:*:20000:0:99999:7:::\n`);
  await mkdir(join(home, '.ssh'), { recursive: true });
  await copyFile(`${identity}.pub`, join(home, '.ssh/authorized_keys'));
  for (const path of [home, join(home, '.ssh'), join(home, '.ssh/authorized_keys')])
    await chown(path, USER.id, USER.id);
  await mkdir(at(PATCHES), { recursive: true });
  const rules = ['auth', 'account', 'session']
    .map((kind) => `${kind} required pam_permit.so\n`)
    .join('');
  const files = {
    'etc/sudoers': `Defaults secure_path="/usr/sbin:/usr/bin:/sbin:/bin"\n${USER.name} ALL=(root) NOPASSWD: /usr/bin/sh -s\n`,
    'etc/pam.d/sudo': rules,
    [`${PATCHES}/kube-apiserver0+strategic.yaml`]: documents([
      { metadata: { annotations: { [MARK]: 'kept' } } },
    ]),
    [`${PATCHES}/kubeletconfiguration0+merge.yaml`]: documents([{ maxPods: MOST_PODS }]),
  };
  for (const [path, text] of Object.entries(files)) await writeFile(at(path), text);
  await chmod(at('etc/sudoers'), 0o440);
  await machine.must(
    'cp -a /opt/parts/debian/usr/bin/sudo /usr/bin/ && cp -a /opt/parts/debian/usr/libexec/sudo /usr/libexec/',
  );
  await appendFile(at('etc/ssh/sshd_config'), `Port ${SSH_PORT}\n`);
  await machine.must(
    "sed -i 's/^PermitRootLogin .*/PermitRootLogin no/' /etc/ssh/sshd_config && systemctl restart sshd",
  );
}

/**
 * Starts etcd as a service of the first machine. kubeadm does not manage this service, and it has its own certificates.
 */
async function startEtcd(machine: Machine, version: string): Promise<void> {
  for (const phase of ['etcd-ca', 'etcd-server', 'apiserver-etcd-client'])
    await machine.must(
      `kubeadm init phase certs ${phase} --cert-dir ${ETCD} --kubernetes-version ${version}`,
    );
  const flags = {
    name: 'external',
    'data-dir': '/var/lib/etcd-external',
    'listen-client-urls': `https://${machine.address}:2379`,
    'advertise-client-urls': `https://${machine.address}:2379`,
    'cert-file': `${ETCD}/etcd/server.crt`,
    'key-file': `${ETCD}/etcd/server.key`,
    'trusted-ca-file': `${ETCD}/etcd/ca.crt`,
    'client-cert-auth': 'true',
  };
  const command = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  await machine.must(
    `setsid /opt/parts/etcd ${command.join(' ')} </dev/null >/var/log/etcd.log 2>&1 &`,
  );
  const health = `curl -fsS --cacert ${ETCD}/etcd/ca.crt --cert ${ETCD}/apiserver-etcd-client.crt --key ${ETCD}/apiserver-etcd-client.key`;
  await until(
    'etcd',
    60,
    async () => (await machine.run(`${health} https://${machine.address}:2379/health`)).ok,
  );
}

function configuration(machine: Machine, version: string): object[] {
  return [
    {
      apiVersion: KUBEADM,
      kind: 'InitConfiguration',
      localAPIEndpoint: { advertiseAddress: machine.address, bindPort: PORTS.backend },
      nodeRegistration: registration(machine),
      patches: { directory: PATCHES },
      skipPhases: ['addon/kube-proxy'],
    },
    {
      apiVersion: KUBEADM,
      kind: 'ClusterConfiguration',
      clusterName: 'another',
      kubernetesVersion: version,
      imageRepository: REPOSITORY,
      certificatesDir: CERTIFICATES,
      controlPlaneEndpoint: `${ENDPOINT}:${PORTS.own}`,
      networking: {
        podSubnet: '10.244.0.0/16',
        serviceSubnet: '172.30.0.0/16',
        dnsDomain: 'cluster.example',
      },
      apiServer: { extraArgs: [{ name: 'profiling', value: 'false' }] },
      proxy: { disabled: true },
      etcd: {
        external: {
          endpoints: [`https://${machine.address}:2379`],
          caFile: `${ETCD}/etcd/ca.crt`,
          certFile: `${ETCD}/apiserver-etcd-client.crt`,
          keyFile: `${ETCD}/apiserver-etcd-client.key`,
        },
      },
    },
    KUBELET_CONFIGURATION,
  ];
}

/** The registration of a machine. The cgroup setting is a flag of the kubelet, and is in no ConfigMap. */
function registration(machine: Machine): object {
  const flags = {
    v: '1',
    'node-labels': 'example.internal/rack=r1',
    ...(onVersion1() ? { 'fail-cgroupv1': 'false' } : {}),
  };
  return {
    name: anotherWay.nodeName(machine),
    kubeletExtraArgs: Object.entries(flags).map(([name, value]) => ({ name, value })),
    ignorePreflightErrors: onVersion1() ? ['SystemVerification'] : [],
  };
}

function joinConfiguration(machine: Machine, joining: string, certificateKey?: string): object {
  const [, token] = /--token (\S+)/.exec(joining) ?? [];
  const [, hash] = /--discovery-token-ca-cert-hash (\S+)/.exec(joining) ?? [];
  const localAPIEndpoint = { advertiseAddress: machine.address, bindPort: PORTS.backend };
  return {
    apiVersion: KUBEADM,
    kind: 'JoinConfiguration',
    caCertPath: `${CERTIFICATES}/ca.crt`,
    discovery: {
      bootstrapToken: {
        apiServerEndpoint: `${ENDPOINT}:${PORTS.own}`,
        token,
        caCertHashes: [hash],
      },
    },
    nodeRegistration: registration(machine),
    patches: { directory: PATCHES },
    ...(certificateKey === undefined ? {} : { controlPlane: { certificateKey, localAPIEndpoint } }),
  };
}
