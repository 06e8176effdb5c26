/** Tests upgrades over SSH: a kubeadm cluster to the next patch version, with the system's ssh client, on a real API server. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { StartServer } from '../../sandbox/sshd/server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import type { ShownStatus } from '../../src/cli/status/json-form.ts';
import type { UpgradeReport } from '../../src/dialects/kubeadm/command/report.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { greatestOverlap, type Interval, Motion } from '../support/expectations/motion.ts';
import { holdAt, isHeld, release, textOf } from '../support/kubeadm/hooks.ts';
import {
  digestOf,
  FROM,
  labelledNodes,
  openScene,
  type Run,
  type Scene,
  TO,
  useCgroupV1,
  versions,
} from '../support/kubeadm/suite.ts';
import { kubeconfigFor } from './control-plane.ts';
import { HOSTS } from './kubeadm-hosts.ts';
import { runRefit } from './refit-process.ts';

// One SSH server is enough here, because these tests do not depend on the server. kubeadm-killed.test.ts tests runs
// that are killed again and again over each server.
describe('over a server in JavaScript', () => {
  describe('an upgrade', () => upgrade(startJavascriptServer));
});

function upgrade(startServer: StartServer): void {
  let scene: Scene;
  let patches = '';
  let report = '';
  let duringRun: readonly string[] = [];
  let intervals: readonly Interval[] = [];
  const runs: Run[] = [];
  beforeAll(async () => {
    scene = await openScene(startServer, { kubeletConfiguration: { failCgroupV1: false } });
    const { cluster } = scene;
    for (const { root } of cluster.hosts) await useCgroupV1(root);
    await cluster.client.patch(nodes, 'w2', { spec: { unschedulable: true } }, { type: 'merge' });
    patches = join(cluster.host('cp2').root, 'etc/kubernetes/patches');
    await mkdir(patches);
    await mkdir(join(cluster.host('cp1').root, 'etc/kubernetes/tmp/kubeadm-backup-etcd-1'));
    const manifest = await cluster.manifest(TO, (each) => {
      const own: Readonly<Record<string, object>> = {
        cp2: { kubeadm: { patches, certificateRenewal: false } },
      };
      const hosts = each['hosts'] as { name: string }[];
      Object.assign(each, {
        concurrent: 2,
        kubeadm: { ignorePreflightErrors: ['SystemVerification'] },
      });
      each['hosts'] = hosts.map((host) => ({ ...host, ...own[host.name] }));
    });
    const stop = new AbortController();
    const motion = await watchWork(scene, stop.signal);
    await holdAt(cluster.host('cp1'), 'before', textOf('stage'));
    report = join(manifest, '../report.json');
    const agreed = ['--yes', '--digest', await digestOf(scene, manifest)];
    const first = scene.refit('apply', ...agreed, '-m', manifest, '--report', report);
    await isHeld(cluster.host('cp1'), first);
    const second = scene.refit('apply', '--yes', '-m', manifest);
    runs.push(first, second);
    await vi.waitFor(() => expect(second.stdout).toContain('Waiting for the lock'), {
      timeout: 150_000,
    });
    duringRun = await labelledNodes(scene);
    await release(cluster.host('cp1'));
    await Promise.all(runs.map(async ({ ended }) => await ended));
    stop.abort();
    intervals = motion.intervals();
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  test('an upgrade succeeds, is verified on every host, and every kubelet has the new version', async () => {
    expect([await runs[0]?.ended, runs[0]?.stdout]).toEqual([
      0,
      expect.stringMatching(/is done\n(Verified .*\n){4}$/),
    ]);
    expect(await versions(scene)).toEqual(HOSTS.map((name) => [name, TO]));
  });

  test('a second run waits, says who holds the lock, and finds nothing left to do', async () => {
    const [first, second] = runs;
    expect(await second?.ended).toBe(0);
    expect(second?.stdout).toContain(`_${first?.child.pid}_`);
    expect(second?.stdout).toContain('Nothing to do: another run has done it.');
  });

  test('an upgrade goes to the leader, then to the follower, then to two workers at a time', () => {
    const [leader, follower, ...workers] = intervals;
    expect([leader?.name, follower?.name, ...workers.map(({ name }) => name).toSorted()]).toEqual(
      HOSTS,
    );
    expect(follower?.from).toBeGreaterThan(leader?.to ?? Number.NaN);
    expect(Math.min(...workers.map(({ from }) => from))).toBeGreaterThan(
      follower?.to ?? Number.NaN,
    );
    expect(greatestOverlap(workers)).toBe(2);
  });

  test('at its end an upgrade prints the versions that it found on each host', () => {
    const pods = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(
      (name) => `${name} ${TO}`,
    );
    const own = [
      ...pods,
      'etcd 3.6.8-0',
      `kubeadm ${TO}`,
      `kubelet ${TO}`,
      'certificates until 2',
    ].join(', ');
    expect(runs[0]?.stdout).toContain(`Verified cp2: ${own}`);
  });

  test('an upgrade writes a report with the state, the versions and the steps of each host', async () => {
    const { outcome, hosts } = JSON.parse(await readFile(report, 'utf8')) as UpgradeReport;
    const steps = ['Stage', 'Drain', 'Kubeadm', 'Kubelet', 'Verify'];
    expect([outcome, hosts.map(({ name, state }) => `${name} ${state}`)]).toEqual([
      'done',
      HOSTS.map((name) => `${name} finished`),
    ]);
    expect(hosts[1]).toMatchObject({
      before: { kubelet: FROM },
      after: { kubelet: TO, 'kube-scheduler': TO },
    });
    expect(Object.keys(hosts[1]?.spent ?? {})).toEqual(steps);
  });

  test('an upgrade runs kubeadm once on each host, apply only on the first, and restarts each kubelet once', async () => {
    for (const host of scene.cluster.hosts) {
      const verb = host.name === 'cp1' ? `upgrade apply --yes ${TO}` : 'upgrade node';
      const own = host.name === 'cp2' ? ` --patches=${patches} --certificate-renewal=false` : '';
      const command = `${verb}${own} --ignore-preflight-errors=SystemVerification`;
      expect([host.name, await logOf(host, 'kubeadm')]).toEqual([host.name, [command]]);
      expect([host.name, await logOf(host, 'kubelet')]).toEqual([host.name, [`started ${TO}`]]);
    }
  });

  test('runs on cgroup v1, which the configuration of kubelets allows, and warns', () => {
    const line =
      'warning cgroup: cp1: failCgroupV1: false allows cgroup v1; kubeadm needs ignorePreflightErrors: ';
    expect(runs[0]?.stdout).toContain(line);
  });

  test('an upgrade keeps only the newest etcd backup that kubeadm made', async () => {
    const folders = await readdir(join(scene.cluster.host('cp1').root, 'etc/kubernetes/tmp'));
    expect(folders.filter((name) => name.startsWith('kubeadm-backup-etcd-'))).toEqual([
      expect.stringMatching(/^kubeadm-backup-etcd-2/),
    ]);
  });

  test('during an upgrade every Node has the label of KubeOne, and after the upgrade no Node has it', async () => {
    expect(duringRun).toEqual(HOSTS);
    expect(await labelledNodes(scene)).toEqual([]);
  });

  test('an upgrade leaves only the cordons that were there before', async () => {
    const { items } = await scene.cluster.client.list(nodes);
    const cordoned = items
      .filter(({ spec }) => spec?.unschedulable)
      .map(({ metadata }) => metadata.name);
    expect(cordoned.filter((name) => HOSTS.includes(name))).toEqual(['w2']);
  });

  test('shows in refit status to the viewer', async () => {
    const shown = await runRefit(
      'status',
      '-o',
      'json',
      '--kubeconfig',
      await kubeconfigFor('viewer'),
    );
    expect([shown.code, shown.stderr]).toEqual([0, []]);
    const { plans } = JSON.parse(shown.stdout.join('\n')) as ShownStatus;
    const own = plans.filter(({ dialect }) => dialect === 'kubeadm');
    expect(own.map(({ kind, name, id, phase }) => [kind, name, id, phase])).toEqual([
      ['ConfigMap', 'refit-kubeadm', TO, 'done'],
    ]);
  });

  test('a run after a completed upgrade has nothing to do', async () => {
    const run = scene.refit('apply', '-m', await scene.cluster.manifest(TO));
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toMatch(
      /^Already at v1\.36\.3: cp1, cp2, w1, w2\n(warning cgroup: .*\n){4}Nothing to do\.\n(Verified .*\n){4}$/,
    );
  });
}

/** Records an interval for each host: from the first message about the host until its node has the new version. */
async function watchWork({ cluster }: Scene, abort: AbortSignal): Promise<Motion> {
  const motion = new Motion();
  const begun = new Set<string>();
  const informer = createInformer(cluster.client, nodes);
  informer.addHandler({
    updated(node) {
      const { name } = node.metadata;
      if (reportOn(node) && !begun.has(name)) motion.begin(name, performance.now());
      if (reportOn(node)) begun.add(name);
      if (begun.has(name) && node.status?.nodeInfo?.kubeletVersion === TO)
        motion.end(name, performance.now());
    },
  });
  void informer.run(abort);
  await informer.whenSynced(abort);
  return motion;
}
