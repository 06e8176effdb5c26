/**
 * Tests a cluster that nobody upgrades for a year. Refit renews its certificates, as
 * docs/guides/kubeadm/certificates.md describes, and everything keeps working.
 */
import { X509Certificate } from 'node:crypto';
import { cp, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { systemClock } from '../../../../src/util/clock.ts';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { changed, lastingContainers, startLasting } from '../containers.ts';
import type { Operator } from '../operator.ts';
import type { Scene } from '../upgrade.ts';
import { settled, verify } from '../verify.ts';
import { KUBECONFIGS, LEAVES, makeOld } from './ageing.ts';

const DAY_MS = 86_400_000;
/**
 * The time for which the old certificates are still valid. It is so short that Refit renews the certificates, and
 * longer than any run of this proof.
 */
const LEFT_MS = 10 * DAY_MS;
const API_SERVER = 6443;
const ETCD = 2379;

export async function renewCertificates(scene: Scene): Promise<void> {
  const { cluster, operator, checks, to } = scene;
  const { controlPlanes } = cluster;
  const [first] = controlPlanes;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await operator.prepare();
  await settled(cluster, operator);
  await startLasting(operator, dirname(operator.manifest));
  const end = systemClock.now() + LEFT_MS;
  for (const { root } of controlPlanes) await makeOld(root, end);
  await cp(join(first.root, 'etc/kubernetes/admin.conf'), cluster.kubeconfig);
  // An API server looks at its files once a minute.
  for (const machine of controlPlanes)
    await until(
      `${machine.name} to serve what is old`,
      180,
      async () => (await served(machine, API_SERVER)) <= end,
    );
  await checks.check('plan: says whose certificates it renews', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan');
    const missing = controlPlanes.filter(
      ({ name }) => !new RegExp(`^${name} .*kubeadm certs renew`, 'm').test(stdout),
    );
    const said = /warning certificate: the client certificate of .* ends on/.test(stdout);
    return [
      ...(ok ? [] : [lastLines(stdout + stderr)]),
      ...missing.map(({ name }) => `${name} is not in the plan`),
      ...(said ? [] : ['nothing is said of the own kubeconfig']),
    ];
  });
  const containers = await lastingContainers(operator);
  await checks.check(
    'apply: ends with exit code 0',
    async () => await operator.succeeds('apply', '--yes'),
  );
  for (const machine of controlPlanes) {
    await checks.check(
      `${machine.name}: each certificate lasts for months`,
      async () => await endingSoon(machine),
    );
    await checks.check(
      `${machine.name}: API server and etcd serve the new ones`,
      async () => await servesOld(machine),
    );
  }
  await verify('after the renewal', checks, cluster, operator, to);
  await checks.check('no container of another pod was restarted', async () =>
    changed(containers, await lastingContainers(operator)),
  );
  await cp(join(first.root, 'etc/kubernetes/admin.conf'), cluster.kubeconfig);
  await checks.check(
    'controllers, scheduler and kubelets go on: a new Deployment runs',
    async () => await runs(operator),
  );
  await checks.check('plan once more: nothing is to be done', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan');
    return ok && stdout.includes('Nothing to do') ? [] : [lastLines(stdout + stderr)];
  });
}

/** Returns the time at which the certificate of a server on a machine expires, in milliseconds since the Unix epoch. */
async function served({ address }: Machine, port: number): Promise<number> {
  return await new Promise((resolve, reject) => {
    // etcd closes the connection because there is no client certificate, but only after it has sent its own
    // certificate.
    const socket = connect(
      { host: address, port, rejectUnauthorized: false, maxVersion: 'TLSv1.3' },
      () => {
        resolve(Date.parse(socket.getPeerCertificate().valid_to));
        socket.destroy();
      },
    );
    socket.on('error', reject);
  });
}

async function servesOld(machine: Machine): Promise<string[]> {
  const soon = systemClock.now() + 2 * LEFT_MS;
  const [api, etcd] = await Promise.all([served(machine, API_SERVER), served(machine, ETCD)]);
  return [
    ...(api > soon ? [] : ['the API server serves the old one']),
    ...(etcd > soon ? [] : ['etcd serves the old one']),
  ];
}

async function endingSoon({ root }: Machine): Promise<string[]> {
  const pems = LEAVES.map(
    async ({ file }) => [file, await readFile(join(root, file), 'utf8')] as const,
  );
  const embedded = KUBECONFIGS.map(async (file) => {
    const text = await readFile(join(root, file), 'utf8').catch(() => '');
    const [, data = ''] = /client-certificate-data: (\S+)/.exec(text) ?? [];
    return [file, Buffer.from(data, 'base64').toString()] as const;
  });
  const all = await Promise.all([...pems, ...embedded]);
  const soon = systemClock.now() + 300 * DAY_MS;
  return all.flatMap(([file, pem]) => {
    const ends =
      pem === '' ? Number.POSITIVE_INFINITY : Date.parse(new X509Certificate(pem).validTo);
    return ends > soon ? [] : [`${file} ends on ${new Date(ends).toISOString()}`];
  });
}

async function runs(operator: Operator): Promise<string[]> {
  const { items } = await operator.get<{ items: { spec: { containers: { image: string }[] } }[] }>(
    'pods',
    '-l',
    'app=lasting',
  );
  const image = items[0]?.spec.containers[0]?.image ?? '';
  await operator.administer('create', 'deployment', 'renewed', '--image', image, '--replicas', '2');
  await operator.administer('rollout', 'status', 'deployment', 'renewed', '--timeout=180s');
  return [];
}
