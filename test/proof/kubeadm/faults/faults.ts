/**
 * Tests an upgrade that is disturbed again and again. After each disturbance the operator runs the same command once
 * more.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import type { Scene } from '../upgrade.ts';
import { rolledOut, settled, verify } from '../verify.ts';
import { applyUntil, type Ended } from './interrupted-apply.ts';

/** The components in the order in which kubeadm replaces their manifests. */
const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** The duration of a cut. It is longer than ssh takes to detect that a connection is dead. */
const CUT_MS = 60_000;

export async function upgradeWithFaults(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  await operator.prepare();
  await settled(cluster, operator);
  await checks.check(
    `a second cluster of ${from} is there`,
    async () => await rolledOut(operator, from),
  );
  const [leader, second, third] = cluster.controlPlanes;
  const [worker] = cluster.workers;
  if (leader === undefined || worker === undefined)
    throw new Error('a proof needs a control plane and a worker');
  await leaveBackup(leader, worker);
  await checks.check(
    'plan: restores nothing on a worker that has a backup of a control plane',
    async () => {
      const { ok, stdout, stderr } = await operator.kubeadm('plan');
      return ok && !/restore/i.test(stdout) ? [] : [lastLines(stdout + stderr)];
    },
  );
  await killRefit(scene, `controller ${leader.name} Stage`);
  for (const component of COMPONENTS) await killKubeadm(scene, leader, component);
  if (second !== undefined)
    for (const step of third === undefined ? ['Drain'] : ['Drain', 'Kubeadm', 'Verify'])
      await killRefit(scene, `controller ${second.name} ${step}`);
  const last = third ?? second;
  if (last !== undefined) await cutNetwork(scene, last);
  for (const step of ['Drain', 'Kubelet']) await killRefit(scene, `worker w\\d ${step}`);
  await checks.check(
    'apply: ends with exit code 0 after all that',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after the faults', checks, cluster, operator, to);
}

/**
 * Puts a backup of manifests on a worker. A host that was a control plane before and joined again as a worker has such
 * a backup.
 */
async function leaveBackup(leader: Machine, worker: Machine): Promise<void> {
  const backup = join(
    worker.root,
    'etc/kubernetes/tmp/kubeadm-backup-manifests-2026-01-01-00-00-00',
  );
  await mkdir(join(backup, '..'), { recursive: true });
  await cp(join(leader.root, 'etc/kubernetes/manifests'), backup, { recursive: true });
}

async function killRefit({ operator, checks }: Scene, line: string): Promise<void> {
  await checks.check(`Refit is killed at "${line}"`, async () => {
    const ended = await applyUntil(operator, new RegExp(line), (kill) => kill());
    return ended.reached ? [] : [notReached(line, ended)];
  });
}

const notReached = (line: string, { code, output }: Ended): string =>
  `"${line}" was never said; exit code ${code}: ${lastLines(output)}`;

/** Kills kubeadm between the two renames of a manifest. kubeadm alone never recovers from this. */
async function killKubeadm(
  { operator, checks }: Scene,
  machine: Machine,
  component: string,
): Promise<void> {
  const manifest = `etc/kubernetes/manifests/${component}.yaml`;
  await checks.check(
    `${machine.name}: kubeadm is killed while ${component} has no manifest`,
    async () => {
      const killer = machine.run(`kill-at-rename /${manifest}`);
      const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
      const killed = await killer;
      return [
        ...(killed.ok ? [] : [killed.stderr.trim()]),
        ...(ok ? ['apply says that all is well'] : []),
        ...(existsSync(join(machine.root, manifest))
          ? [`${manifest} is there: ${lastLines(stdout + stderr)}`]
          : []),
      ];
    },
  );
  await checks.check(`plan: says that it restores the manifest on ${machine.name}`, async () => {
    const { stdout, stderr } = await operator.kubeadm('plan');
    return /restore/i.test(stdout + stderr) ? [] : [lastLines(stdout + stderr)];
  });
}

/** Drops packets to sshd, as when a network switch is unplugged. The host and its kubeadm continue. */
async function cutNetwork({ operator, checks, log }: Scene, machine: Machine): Promise<void> {
  const line = `controller ${machine.name} Kubeadm`;
  const rule = 'INPUT -p tcp --dport 22 -j DROP';
  await checks.check(`${machine.name}: one apply outlives a network that is cut`, async () => {
    let wasDone = false;
    const ended = await applyUntil(operator, new RegExp(line), async (kill) => {
      await until('kubeadm to run', 60, async () => (await machine.run('pgrep -x kubeadm')).ok);
      await machine.must(`iptables -I ${rule}`);
      log(`${machine.name} is cut off`);
      const end = performance.now() + CUT_MS;
      await until('the network to come back', CUT_MS / 1000 + 30, () => performance.now() > end);
      await machine.must(`iptables -D ${rule}`);
      log(`${machine.name} is back`);
      await until(`${machine.name} to be done`, 600, async () => {
        const { stdout } = await machine.run('cat /var/lib/refit/kubeadm.journal');
        wasDone = stdout.trim().endsWith(' kubelet done');
        return wasDone;
      }).finally(kill);
    });
    return [
      ...(ended.reached ? [] : [notReached(line, ended)]),
      ...(wasDone ? [] : [lastLines(ended.output)]),
    ];
  });
}
