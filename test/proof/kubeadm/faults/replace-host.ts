/**
 * Tests control planes that have lost their etcd member for ever. The test replaces these control planes with the
 * commands of the guide, and then upgrades the cluster.
 */
import { appendFile, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { lastLines, type RunResult, run } from '../../../../tools/controlplane/run.ts';
import { must } from '../../../../tools/release/commands.ts';
import { onVersion1 } from '../../machines/kernel.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import type { Scene } from '../upgrade.ts';
import { rolledOut, settled, verify } from '../verify.ts';

const GUIDE = join(import.meta.dirname, '../../../../docs/guides/kubeadm/restore.md');

export async function replaceHost(scene: Scene): Promise<void> {
  const { cluster, operator, checks, from, to } = scene;
  const [first, gone, emptied] = cluster.controlPlanes;
  if (first === undefined || gone === undefined || emptied === undefined)
    throw new Error('this proof needs three control planes');
  await operator.prepare();
  await settled(cluster, operator);
  await approveServing(scene);
  await checks.check(`a cluster of ${from} is there`, async () => await rolledOut(operator, from));

  await gone.powerOff();
  await refused(scene, gone, new RegExp(`REFIT_SSH: ${gone.name} `));
  await cluster.replace(gone);
  await replaced(scene, gone);

  await emptied.must('rm -rf /var/lib/etcd/member && kill -KILL $(pgrep -x etcd)');
  await until('the member to be gone', 120, async () => !(await emptied.run('pgrep -x etcd')).ok);
  await refused(scene, emptied, new RegExp(`etcd.*the member on ${emptied.name} does not answer`));
  await replaced(scene, emptied);

  await checks.check(
    'apply: ends with exit code 0',
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify('after apply', checks, cluster, operator, to);
}

/** Approves the serving certificates of the kubelets, because `kubectl exec` needs them. */
async function approveServing({ cluster, operator }: Scene): Promise<void> {
  await until('requests of all kubelets', 120, async () => {
    const names = (await operator.administer('get', 'csr', '-o', 'name')).trim().split('\n');
    const pending = names.map((name) => name.split('/')[1] ?? '').filter((name) => name !== '');
    if (pending.length > 0) await operator.administer('certificate', 'approve', ...pending);
    const serving = cluster.machines.map(
      async (machine) =>
        await machine.run('test -s /var/lib/kubelet/pki/kubelet-server-current.pem'),
    );
    return (await Promise.all(serving)).every(({ ok }) => ok);
  });
}

async function refused(
  { operator, checks }: Scene,
  machine: Machine,
  reason: RegExp,
): Promise<void> {
  await checks.check(`apply: is refused while ${machine.name} is lost`, async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
    return !ok && reason.test(stdout + stderr) ? [] : [lastLines(stdout + stderr)];
  });
}

/** Runs the commands of the guide, with real values in place of the placeholders that a person replaces. */
async function replaced(scene: Scene, machine: Machine): Promise<void> {
  const { cluster, operator, checks } = scene;
  const guide = await sectionOf('Replace a control-plane host');
  const [first] = cluster.controlPlanes;
  if (first === undefined) throw new Error('a proof needs a control plane');
  await checks.check(`${machine.name}: its member and its Node are removed`, async () => {
    const block = /```sh\n(?<text>.*?)```/s.exec(guide)?.groups?.['text'] ?? '';
    const listed = await shell(scene, block.slice(0, block.indexOf('$etcdctl member remove')));
    const id = listed.stdout
      .split('\n')
      .find((line) => line.includes(` ${machine.name},`))
      ?.split(',')[0];
    if (!listed.ok || id === undefined) return [lastLines(listed.stdout + listed.stderr)];
    const words = block.replace('$etcdctl member list', '').replace('remove ID', `remove ${id}`);
    const removed = await shell(scene, words.replaceAll('cp2', machine.name));
    return removed.ok ? [] : [lastLines(removed.stdout + removed.stderr)];
  });
  await checks.check(`${machine.name}: its successor joins`, async () => {
    const quoted = [...guide.matchAll(/`(kubeadm [^`]+)`/g)].map(([, command = '']) => command);
    const [reset = '', upload = '', token = ''] = [
      'kubeadm reset',
      'upload-certs',
      'token create',
    ].map((words) => quoted.find((command) => command.includes(words)));
    if ((await machine.run('test -e /etc/kubernetes/kubelet.conf')).ok) await machine.must(reset);
    const key = (await first.must(upload)).trim().split('\n').at(-1);
    const joining = (await first.must(token)).trim();
    const flags = onVersion1() ? ' --ignore-preflight-errors=SystemVerification' : '';
    await machine.must(`${joining} --control-plane --certificate-key ${key}${flags}`);
    return [];
  });
  await appendFile(
    join(dirname(operator.manifest), 'known_hosts'),
    await must('ssh-keyscan', [machine.address]),
  );
  await settled(cluster, operator);
  await approveServing(scene);
  await checks.check(
    `plan: is content with the new ${machine.name}`,
    async () => await operator.succeeds('plan'),
  );
}

async function sectionOf(title: string): Promise<string> {
  const [, section = ''] = (await readFile(GUIDE, 'utf8')).split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

/** Runs a script with the administrator's kubeconfig and with the kubectl of the operator. */
async function shell({ cluster, operator }: Scene, script: string): Promise<RunResult> {
  const environment = {
    KUBECONFIG: cluster.kubeconfig,
    PATH: `${dirname(operator.kubectl)}:${process.env['PATH']}`,
  };
  return await run('sh', ['-ec', script], { environment });
}
