/**
 * Upgrades the cluster that differs from the usual cluster (see way.ts), with the commands of docs/guides/kubeadm.md.
 * Then checks that the upgrade has kept all the differences.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { stringify } from 'yaml';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import { must } from '../../../../tools/release/commands.ts';
import { differing } from '../../checks.ts';
import { onVersion1 } from '../../machines/kernel.ts';
import type { Machine } from '../../machines/machine.ts';
import { OPERATOR } from '../../machines/namespaces.ts';
import type { Cluster } from '../cluster.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';
import { CERTIFICATES, MARK, MOST_PODS, PATCHES, PORTS, SSH_PORT, USER } from './way.ts';

const DOWNLOADS = 8000;

export async function upgradeAnotherWay(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  const directory = dirname(operator.manifest);
  await resolveNames(cluster, directory);
  await settled(cluster, operator);
  const [first] = cluster.controlPlanes;
  if (first === undefined) throw new Error('a proof needs a control plane');
  const downloads = await serve(join(first.root, 'opt/kubernetes', to, 'kubelet'));
  try {
    await collectKeys(cluster, directory);
    await closeWorkers(cluster);
    await closeApiServers(cluster);
    await makeUser(scene, first, directory);
    await writeFile(operator.manifest, stringify(await manifestFor(scene, first)));
    await checks.check('plan: names each host by its Node, without a refusal', async () => {
      const { ok, stdout, stderr } = await operator.kubeadm('plan');
      const rows = cluster.machines.map((machine) => `${cluster.way.nodeName(machine)} `);
      const missing = rows.filter((row) => !stdout.includes(`\n${row}`));
      const version = stdout.includes(`${from} → ${to}`) ? [] : ['no versions'];
      return [
        ...(ok ? version : [lastLines(stdout + stderr)]),
        ...missing.map((row) => `no row of ${row}`),
      ];
    });
    await checks.check(
      'apply: ends with exit code 0',
      async () => await operator.succeeds('apply', '--yes'),
    );
    await verify('after apply', checks, cluster, operator, to);
    for (const machine of cluster.machines)
      await checks.check(
        `${machine.name}: has all that it was made with`,
        async () => await isAsMade(machine, cluster),
      );
    await checks.check('plan once more: nothing is to be done', async () => {
      const { ok, stdout, stderr } = await operator.kubeadm('plan');
      return ok && stdout.includes('Nothing to do') ? [] : [lastLines(stdout + stderr)];
    });
  } finally {
    downloads.close();
  }
}

/** Gives the operator the same entries in /etc/hosts as the machines. */
async function resolveNames({ way }: Cluster, directory: string): Promise<void> {
  const file = join(directory, 'hosts');
  await writeFile(file, `${await readFile('/etc/hosts', 'utf8')}\n${way.names}`);
  await must('mount', ['--bind', file, '/etc/hosts']);
}

async function serve(file: string): Promise<Server> {
  const server = createServer((_request, response) => {
    void stat(file).then(async ({ size }) => {
      response.writeHead(200, { 'content-length': size });
      await pipeline(createReadStream(file), response).catch(() => undefined);
    });
  });
  server.listen(DOWNLOADS, OPERATOR);
  await once(server, 'listening');
  return server;
}

async function collectKeys({ machines }: Cluster, directory: string): Promise<void> {
  const addresses = machines.map(({ address }) => address);
  await writeFile(
    join(directory, 'known_hosts'),
    await must('ssh-keyscan', ['-p', String(SSH_PORT), ...addresses]),
  );
}

/** Blocks SSH from the operator to the workers. From now on only the control plane reaches them. */
async function closeWorkers({ workers }: Cluster): Promise<void> {
  for (const machine of workers)
    await machine.must(`iptables -I INPUT -p tcp --dport ${SSH_PORT} -s ${OPERATOR} -j DROP`);
}

/** Blocks the direct path to the API servers. From now on the operator reaches them only through the load balancer. */
async function closeApiServers({ controlPlanes }: Cluster): Promise<void> {
  for (const machine of controlPlanes)
    await machine.must(`iptables -I INPUT -p tcp --dport ${PORTS.backend} -s ${OPERATOR} -j DROP`);
}

/** The user with few rights. */
async function makeUser({ operator }: Scene, first: Machine, directory: string): Promise<void> {
  await operator.administer('apply', '-f', 'deploy/rbac-kubeadm.yaml');
  const config = await first.must(
    'kubeadm kubeconfig user --client-name refit-kubeadm --config /etc/kubeadm.yaml',
  );
  await writeFile(join(directory, 'refit.conf'), config);
}

async function manifestFor({ cluster, to }: Scene, first: Machine): Promise<object> {
  const { machines, workers, identity, way } = cluster;
  const path = (name: string): string => `/opt/kubernetes/${to}/${name}`;
  const hash = createHash('sha256');
  await pipeline(createReadStream(join(first.root, path('kubelet'))), hash);
  return {
    version: to,
    kubeconfig: './refit.conf',
    hosts: machines.map((machine) => ({
      name: way.nodeName(machine),
      address: machine.address,
      role: workers.includes(machine) ? 'worker' : 'controlPlane',
      ...(workers.includes(machine) ? { bastion: { address: first.address, port: SSH_PORT } } : {}),
    })),
    binaries: {
      kubeadm: { path: path('kubeadm') },
      kubelet: { url: `http://${OPERATOR}:${DOWNLOADS}/kubelet`, sha256: hash.digest('hex') },
      kubectl: { path: path('kubectl') },
    },
    kubeadm: {
      patches: PATCHES,
      ...(onVersion1() ? { ignorePreflightErrors: ['SystemVerification'] } : {}),
    },
    ssh: {
      user: USER.name,
      port: SSH_PORT,
      path: '/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      identityFile: identity,
      knownHostsFile: './known_hosts',
    },
  };
}

async function isAsMade(machine: Machine, { controlPlanes, way }: Cluster): Promise<string[]> {
  const read = async (path: string): Promise<string> =>
    await readFile(join(machine.root, path), 'utf8');
  const kubelet = await read('var/lib/kubelet/config.yaml');
  const flags = await read('var/lib/kubelet/kubeadm-flags.env');
  const manifest = controlPlanes.includes(machine)
    ? await read('etc/kubernetes/manifests/kube-apiserver.yaml')
    : undefined;
  const wanted = [
    `${MARK}: kept`,
    `--secure-port=${PORTS.backend}`,
    `--client-ca-file=${CERTIFICATES}/ca.crt`,
    '--profiling=false',
    '--service-cluster-ip-range=172.30.0.0/16',
  ];
  const elsewhere = (await machine.run('ls /usr/bin/kubeadm /usr/bin/kubelet')).stdout.trim();
  return [
    ...(kubelet.includes(`maxPods: ${MOST_PODS}\n`) ? [] : ['the patch of its kubelet is gone']),
    ...(flags.includes('example.internal/rack=r1') ? [] : ['the flags of its kubelet are gone']),
    ...wanted
      .filter((text) => manifest?.includes(text) === false)
      .map((text) => `its API server lacks ${text}`),
    ...differing({ 'binaries beside those in /opt/bin': elsewhere }, ''),
    ...differing({ hostname: (await machine.must('hostname')).trim() }, machine.name),
    ...(way.nodeName(machine) === machine.name ? ['its Node has the name of the host'] : []),
  ];
}
