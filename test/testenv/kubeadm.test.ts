/** Tests upgrades over SSH: a kubeadm cluster to the next patch version, with the system's ssh client, on a real API server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { StartServer } from '../../sandbox/sshd/server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import type { StatusView } from '../../src/cli/status/view.ts';
import type { UpgradeReport } from '../../src/dialects/kubeadm/command/report.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps, leases, nodes } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { greatestOverlap, type Interval, Motion } from '../support/expectations/motion.ts';
import { startDebianServer, whyNoSshd } from '../support/kubeadm/debian-server.ts';
import { cutOffWithout, holdAt, isHeld, lose, release, textOf } from '../support/kubeadm/hooks.ts';
import {
  digestOf,
  FROM,
  kill,
  openScene,
  type Run,
  type Scene,
  TO,
  useCgroupV1,
  versions,
} from '../support/kubeadm/suite.ts';
import { leftOut } from '../support/left-out.ts';
import { WHOLE } from '../support/whole.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

interface Kubeconfig {
  clusters: { readonly name: string; readonly cluster: object }[];
}

const HOSTS = ['cp1', 'cp2', 'w1', 'w2'];
const MANIFEST = 'etc/kubernetes/manifests/kube-apiserver.yaml';
type Moment = 'before' | 'after';
/** When a run is killed: as soon as the step is requested, or when it is done but not yet reported. */
const STEPS: [Moment, string][] = [
  ['before', 'stage'],
  ['after', 'stage'],
  ['before', 'kubeadm'],
  ['after', 'kubeadm'],
  ['after', 'kubelet'],
];
/** By host. The SSH server makes no difference between steps and to refusals: for the second one, kubeadm's own step is enough. */
type Kills = Readonly<
  Record<'cp1' | 'w2', readonly [Moment, string][]> & { cp2?: readonly [Moment, string][] }
>;
const EVERY_KIND: Kills = {
  cp1: STEPS,
  cp2: WHOLE ? STEPS.slice(1) : STEPS.slice(3, 4),
  w2: STEPS.slice(4),
};
const LEADER_ONLY: Kills = { cp1: STEPS.slice(2, 4), ...(WHOLE && { cp2: [] }), w2: [] };
const SERVERS: [string, StartServer, string | undefined, Kills][] = [
  ['a server in JavaScript', startJavascriptServer, undefined, EVERY_KIND],
  ["Debian's sshd", startDebianServer, whyNoSshd(), LEADER_ONLY],
];
/** Short: the run after a killed one waits for the lease to expire. */
const LEASE = ['--lease-duration', '3s'];

for (const [name, startServer, why, kills] of SERVERS) {
  if (why === undefined) describe(`over ${name}`, () => suite(startServer, kills));
  else leftOut(`over ${name}`, why);
}

function suite(startServer: StartServer, kills: Kills): void {
  // Here the server makes no difference: what is killed again and again ends well over each, too.
  if (kills === EVERY_KIND) {
    describe('what is refused', () => refusals(startServer));
    describe('an upgrade', () => upgrade(startServer));
  }
  describe('an upgrade that is killed again and again', () => killed(startServer, kills));
}

function refusals(startServer: StartServer): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(startServer, { offers: [TO, 'v1.37.0'] });
  });
  afterAll(async () => {
    const { client, hosts } = scene.cluster;
    const { namespace, name } = PLACE;
    await expect(client.get(configMaps, name, { namespace })).rejects.toThrow('not found');
    await expect(client.get(leases, name, { namespace })).rejects.toThrow('not found');
    for (const host of hosts)
      await expect(access(join(host.root, 'var/lib/refit'))).rejects.toThrow('ENOENT');
    await scene[Symbol.asyncDispose]();
  });

  type Spoil = (manifest: Record<string, unknown>) => void;
  const firstHost =
    (change: object): Spoil =>
    (manifest) => {
      const [first, ...rest] = manifest['hosts'] as object[];
      manifest['hosts'] = [{ ...first, ...change }, ...rest];
    };

  test.each<[string, string, Spoil, number, RegExp]>([
    [
      'a skipped minor version, by the name of its rule',
      'v1.38.0',
      () => undefined,
      1,
      /^REFIT_REFUSED: .*R2: API servers are at v1\.36\.2: go to v1\.37 first, then to v1\.38\.0; nothing lifts this: set version to the next minor version, .*\n$/,
    ],
    [
      'an unknown field',
      TO,
      firstHost({ adress: 'x' }),
      2,
      /^REFIT_FILE: .*hosts\[0\]: has no member adress, check the spelling .*\n$/,
    ],
    [
      'a host that is no Node',
      TO,
      firstHost({ name: 'cp9' }),
      1,
      /^REFIT_REFUSED: 2 errors .*\n {2}F2: host cp9: the cluster has no Node of this name; .*\n {2}F1: .*add cp1; .*\n$/,
    ],
  ])('%s', async (_name, version, spoil, code, line) => {
    const run = scene.refit('apply', '--yes', '-m', await scene.cluster.manifest(version, spoil));
    expect([await run.ended, run.stderr]).toEqual([code, expect.stringMatching(line)]);
  });

  test('a minor version where a policy forbids drains', async () => {
    const spec = { plans: [{ dialect: 'kubeadm' }], drain: { enabled: false } };
    const name = 'kubeadm-undrained';
    await apply(await readFile('deploy/crds/upgrade.refit.dev_upgradepolicies.yaml', 'utf8'));
    await apply(
      JSON.stringify({
        apiVersion: 'upgrade.refit.dev/v1alpha1',
        kind: 'UpgradePolicy',
        metadata: { name },
        spec,
      }),
    );
    const run = scene.refit('apply', '--yes', '-m', await scene.cluster.manifest('v1.37.0'));
    const line = /^REFIT_REFUSED: 4 errors .*\n {2}R9: the node of kubelet of cp1 must be drained /;
    expect([await run.ended, run.stderr]).toEqual([1, expect.stringMatching(line)]);
    expect(run.stdout).toContain(
      `UpgradePolicy ${name} says that nodes are neither cordoned nor drained`,
    );
    await kubectlAs('admin', ['delete', 'upgradepolicy', name]);
  });

  test('to restore the backup of a kubeadm that Refit did not start, although --yes is given', async () => {
    const { root } = scene.cluster.host('cp2');
    const manifest = join(root, 'etc/kubernetes/manifests/kube-scheduler.yaml');
    const folder = join(root, 'etc/kubernetes/tmp/kubeadm-backup-manifests-1');
    await mkdir(folder, { recursive: true });
    await rename(manifest, join(folder, 'kube-scheduler.yaml'));
    const path = await scene.cluster.manifest(TO);
    const shown = `cp2: a kubeadm that Refit did not start removed kube-scheduler.yaml; to restore: ${folder}/kube-scheduler.yaml\n`;
    const plan = scene.refit('plan', '-m', path);
    expect([await plan.ended, plan.stdout]).toEqual([0, expect.stringContaining(shown)]);
    const run = scene.refit('apply', '--yes', '-m', path);
    const wrong = scene.refit(
      'apply',
      '--yes',
      '-m',
      await scene.cluster.manifest(TO, firstHost({ role: 'worker' })),
    );
    const role = /^REFIT_REFUSED: F2: host cp1 has role worker, but its Node has the label .*\n$/;
    expect([await wrong.ended, wrong.stderr]).toEqual([1, expect.stringMatching(role)]);
    const line =
      /^REFIT_USAGE: cp2: no journal of Refit belongs to this backup\..* Only a person can answer this: .*\n$/;
    expect([await run.ended, run.stdout, run.stderr]).toEqual([
      2,
      shown,
      expect.stringMatching(line),
    ]);
    await expect(access(manifest)).rejects.toThrow('ENOENT');
    await rename(join(folder, 'kube-scheduler.yaml'), manifest);
  });

  test('what apply would stumble over on hosts, all at once', async () => {
    const path = await scene.cluster.manifest(TO, (each) => {
      const [first, ...rest] = each['hosts'] as object[];
      each['hosts'] = [{ ...first, kubeadm: { patches: '/nowhere' } }, ...rest];
      each['binaries'] = {
        kubeadm: { path: `/opt/kubernetes/${FROM}/kubeadm` },
        kubelet: { path: `/opt/kubernetes/${TO}/kubelet`, sha256: '0'.repeat(64) },
      };
    });
    const run = scene.refit('plan', '-o', 'json', '-m', path);
    const remedy = 'nothing lifts this: correct that on the host, or in the manifest';
    const found = [
      `cp1: binaries.kubeadm has version ${FROM}, expected ${TO}`,
      'cp1: binaries.kubelet.sha256 does not match the file',
      'cp1: kubeadm: no file /nowhere on this host',
      `cp2: binaries.kubeadm has version ${FROM}, expected ${TO}`,
    ];
    const lines = found.map((each) => `\n  host: ${each}; ${remedy}`);
    expect([await run.ended, run.stderr]).toEqual([1, expect.stringContaining(lines.join(''))]);
    const { outcome, findings } = JSON.parse(run.stdout) as UpgradeReport;
    expect([outcome, findings[0]?.message]).toEqual([
      'refused',
      expect.stringContaining(`expected ${TO}`),
    ]);
  });

  test('PATH without kubeadm, by its name; the manifest sets it', async () => {
    const path = await scene.cluster.manifest(TO, firstHost({ path: '/usr/bin:/bin' }));
    const run = scene.refit('plan', '-m', path);
    const line =
      /^REFIT_REFUSED: 3 errors .*\n {2}F11: cp1: .*\n {2}host: cp1: no kubeadm in PATH \(\/usr\/bin:\/bin\): install it, or set path /;
    expect([await run.ended, run.stderr]).toEqual([1, expect.stringMatching(line)]);
  });

  describe('with an API server that is away', () => {
    let path = '';
    let away = '';
    const manifestFile = (): string => join(scene.cluster.host('cp1').root, MANIFEST);
    beforeEach(async () => {
      const { cluster } = scene;
      const kubeconfig = parse(
        await readFile(await kubeconfigFor('kubeadm'), 'utf8'),
      ) as Kubeconfig;
      kubeconfig.clusters = kubeconfig.clusters.map(({ name }) => ({
        name,
        cluster: { server: cluster.firstServer, 'insecure-skip-tls-verify': true },
      }));
      path = await cluster.manifest(TO, (each) => {
        each['kubeconfig'] = 'through-cp1';
      });
      await writeFile(join(path, '../through-cp1'), stringify(kubeconfig));
      away = join(
        cluster.host('cp1').root,
        'etc/kubernetes/tmp/kubeadm-backup-manifests-1/kube-apiserver.yaml',
      );
      await mkdir(join(away, '..'), { recursive: true });
      await rename(manifestFile(), away);
    });

    test('a plan says why, and what apply would do first', async () => {
      const run = scene.refit('plan', '-m', path);
      const cure = 'The API server does not answer without that manifest: restore it first.\n';
      expect([await run.ended, run.stderr, run.stdout]).toEqual([
        0,
        '',
        expect.stringMatching(`${away}\n${cure}$`),
      ]);
      await rename(away, manifestFile());
    });

    test('a run waits while kubeadm replaces it, and then shows the plan', async () => {
      const { root } = scene.cluster.host('cp1');
      await mkdir(join(root, 'var/lib/refit'), { recursive: true });
      const hold = spawn('flock', [join(root, 'var/lib/refit/kubeadm.lock'), 'cat'], {
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      await rename(join(away, '..'), `${root}/held`);
      const run = scene.refit('plan', '-m', path);
      const line = 'Waiting for the API server, which kubeadm replaces on cp1';
      await vi.waitFor(() => expect(run.stdout).toContain(line), { timeout: 60_000 });
      await rename(join(root, 'held/kube-apiserver.yaml'), manifestFile());
      expect([await run.ended, run.stderr]).toEqual([0, '']);
      expect(run.stdout).toContain(`cp1   leader    ${FROM} → ${TO}  kubeadm upgrade apply ${TO}`);
      expect(run.stdout).toContain(`w2    worker    ${FROM} → ${TO}  kubeadm upgrade node`);
      hold.stdin.end();
      await once(hold, 'close');
      await rm(join(root, 'var/lib/refit'), { recursive: true });
    });
  });

  test('hosts that cannot be logged in to: each says why', async () => {
    const own: Readonly<Record<string, object>> = {
      cp1: { port: 1 },
      w1: { identityFile: 'cp1/host-key' },
    };
    const manifest = await scene.cluster.manifest(TO, (each) => {
      each['hosts'] = (each['hosts'] as { name: string }[]).map((host) => ({
        ...host,
        ...own[host.name],
      }));
      each['ssh'] = { identityFile: 'identity', knownHostsFile: 'changed' };
    });
    const known = (await readFile(join(manifest, '../known_hosts'), 'utf8')).trim().split('\n');
    const [address = ''] = known[3]?.split(' ') ?? [];
    const keyOfCp1 = known[0]?.split(' ').slice(1).join(' ') ?? '';
    // That of cp2 is unknown, that of w2 another.
    await writeFile(
      join(manifest, '../changed'),
      [known[0], known[2], `${address} ${keyOfCp1}`, ''].join('\n'),
    );
    const run = scene.refit('apply', '--yes', '-m', manifest);
    const reasons = [
      'cp1 \\(127.0.0.1\\): .*Connection refused.*',
      'cp2 \\(127.0.0.1\\): its host key is unknown: .*',
      'w1 \\(127.0.0.1\\): login as root is denied; .*',
      'w2 \\(127.0.0.1\\): its host key has changed: .*',
    ];
    const line = new RegExp(
      `^REFIT_SSH: 4 errors .*\n${reasons.map((each) => `  ${each}\n`).join('')}$`,
    );
    expect([await run.ended, run.stderr]).toEqual([3, expect.stringMatching(line)]);
  });

  test('without anybody to agree, after the plan was shown', async () => {
    const run = scene.refit('apply', '-m', await scene.cluster.manifest(TO));
    expect([await run.ended, run.stderr]).toEqual([
      2,
      expect.stringMatching(/^REFIT_USAGE: there is no terminal to ask: pass --yes/),
    ]);
    expect(run.stdout).toContain(`cp1   leader    ${FROM} → ${TO}  kubeadm upgrade apply ${TO}`);
  });

  test('another plan than the one that somebody agreed to', async () => {
    const run = scene.refit(
      'apply',
      '--yes',
      '--digest',
      'sha256:1',
      '-m',
      await scene.cluster.manifest(TO),
    );
    const line =
      /^REFIT_REFUSED: --digest: found sha256:1, but this plan has sha256:\w{64}: look at it .*\n$/;
    expect([await run.ended, run.stderr]).toEqual([1, expect.stringMatching(line)]);
  });

  test('a host whose kubeadm refuses, before any host is cordoned', async () => {
    const { hosts, client } = scene.cluster;
    await writeFile(
      join(scene.cluster.host('cp2').root, 'images-missing'),
      'registry.local:5000/kube-scheduler',
    );
    const run = scene.refit('apply', '--yes', '-m', await scene.cluster.manifest(TO));
    const line =
      /^REFIT_REFUSED: cp2: not ready for the upgrade, nothing was changed: .*ImagePull.*scheduler \(/;
    expect([await run.ended, run.stderr]).toEqual([1, expect.stringMatching(line)]);
    const asked = await Promise.all(
      hosts.map(async (host) => await logOf(host, 'kubeadm-preflight')),
    );
    const words = (command: string): string[] => command.split(' ').toSorted();
    const shared = [
      words(`upgrade apply phase preflight --yes --ignore-preflight-errors=CreateJob ${TO}`),
    ];
    const plan = words(`upgrade plan ${TO} -o json --ignore-preflight-errors=all`);
    const leader = [words(`upgrade apply phase preflight ${TO} --yes`), plan];
    const node = [words('upgrade node phase preflight')];
    expect(asked.map((commands) => commands.map(words))).toEqual([leader, shared, node, node]);
    const { items } = await client.list(nodes);
    expect(
      items.filter((each) => reportOn(each) !== undefined || each.spec?.unschedulable),
    ).toEqual([]);
    const { namespace, name } = PLACE;
    await expect(client.get(configMaps, name, { namespace })).rejects.toThrow('not found');
    await client.delete(leases, name, { namespace });
    for (const { root } of hosts) await rm(join(root, 'var/lib/refit'), { recursive: true });
  });
}

function upgrade(startServer: StartServer): void {
  let scene: Scene;
  let patches = '';
  let report = '';
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
    await release(cluster.host('cp1'));
    await Promise.all(runs.map(async ({ ended }) => await ended));
    stop.abort();
    intervals = motion.intervals();
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  test('ends well, and every host has the version in everything', async () => {
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

  test('goes by leader, follower and then workers, two at a time', () => {
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

  test('says what it found on each host at the end', () => {
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

  test('writes a report', async () => {
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

  test('runs kubeadm once on each host, apply on the first only, and restarts each kubelet once', async () => {
    for (const host of scene.cluster.hosts) {
      const verb = host.name === 'cp1' ? `upgrade apply --yes ${TO}` : 'upgrade node';
      const own = host.name === 'cp2' ? ` --patches=${patches} --certificate-renewal=false` : '';
      const command = `${verb} --ignore-preflight-errors=SystemVerification${own}`;
      expect([host.name, await logOf(host, 'kubeadm')]).toEqual([host.name, [command]]);
      expect([host.name, await logOf(host, 'kubelet')]).toEqual([host.name, [`started ${TO}`]]);
    }
  });

  test('runs on cgroup v1, which the configuration of kubelets allows, and warns', () => {
    const line =
      'warning cgroup: cp1: failCgroupV1: false allows cgroup v1; kubeadm needs ignorePreflightErrors: ';
    expect(runs[0]?.stdout).toContain(line);
  });

  test("keeps the newest of kubeadm's copies of etcd", async () => {
    const folders = await readdir(join(scene.cluster.host('cp1').root, 'etc/kubernetes/tmp'));
    expect(folders.filter((name) => name.startsWith('kubeadm-backup-etcd-'))).toEqual([
      expect.stringMatching(/^kubeadm-backup-etcd-2/),
    ]);
  });

  test('leaves only foreign cordons', async () => {
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
    const { plans } = JSON.parse(shown.stdout.join('\n')) as StatusView;
    const own = plans.filter(({ dialect }) => dialect === 'kubeadm');
    expect(own.map(({ kind, name, id, phase }) => [kind, name, id, phase])).toEqual([
      ['ConfigMap', 'refit-kubeadm', TO, 'done'],
    ]);
  });

  test('another run has nothing to do', async () => {
    const run = scene.refit('apply', '-m', await scene.cluster.manifest(TO));
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(run.stdout).toMatch(
      /^Already at v1\.36\.3: cp1, cp2, w1, w2\n(warning cgroup: .*\n){4}Nothing to do\.\n(Verified .*\n){4}$/,
    );
  });
}

function killed(startServer: StartServer, kills: Kills): void {
  let scene: Scene;
  let manifest = '';
  const apply = (): Run => scene.refit('apply', '--yes', '-m', manifest, ...LEASE);
  beforeAll(async () => {
    scene = await openScene(startServer);
    manifest = await scene.cluster.manifest(TO);
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  const killAt = async (name: string, moment: Moment, step: string): Promise<Run> => {
    const host = scene.cluster.host(name);
    await holdAt(host, moment, textOf(step));
    const run = apply();
    await isHeld(host, run);
    await kill(run);
    await lose(host);
    return run;
  };

  const follower = (steps: readonly [Moment, string][]): void => {
    test('where kubeadm itself is cut off: that host has failed, and no other is touched', async () => {
      const host = scene.cluster.host('cp2');
      await cutOffWithout(host, 'kube-apiserver');
      const run = apply();
      expect(await run.ended).toBe(1);
      expect(run.stdout).toMatch(
        /controller cp2 failed: step kubeadm failed with exit code 137: .*\n[^]*has failed: cp2 failed\n$/,
      );
      await expect(access(join(host.root, MANIFEST))).rejects.toThrow('ENOENT');
      await expect(
        access(join(scene.cluster.host('w1').root, 'var/lib/refit/kubeadm.journal')),
      ).rejects.toThrow('ENOENT');
    });

    test('as soon as the manifest is put back', async () => {
      const run = await killAt('cp2', 'before', 'stage');
      expect(run.stdout).toContain('cp2: restored kube-apiserver.yaml');
      await access(join(scene.cluster.host('cp2').root, MANIFEST));
    });

    test.each(steps)('%s %s', async (moment, step) => void (await killAt('cp2', moment, step)));
  };

  test.each(kills.cp1)(
    'on cp1, %s %s',
    async (moment, step) => void (await killAt('cp1', moment, step)),
  );

  if (kills.cp2) describe('on cp2', () => follower(kills.cp2 ?? []));

  test('on w1, while kubeadm runs: it continues by itself', async () => {
    const run = apply();
    const begun = async (): Promise<void> =>
      expect(await logOf(scene.cluster.host('w1'), 'kubeadm')).toHaveLength(1);
    await vi.waitFor(begun, { timeout: 150_000, interval: 10 });
    await kill(run);
  });

  test.each(kills.w2)(
    'on w2, %s %s',
    async (moment, step) => void (await killAt('w2', moment, step)),
  );

  test('is finished by the last run without a flag, and no kubeadm and no restart ran twice', async () => {
    const run = apply();
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(await versions(scene)).toEqual(HOSTS.map((name) => [name, TO]));
    for (const host of scene.cluster.hosts) {
      // The step that was cut off runs again.
      const times = host.name === 'cp2' && kills.cp2 ? 2 : 1;
      expect([host.name, (await logOf(host, 'kubeadm')).length]).toEqual([host.name, times]);
      expect([host.name, (await logOf(host, 'kubelet')).length]).toEqual([host.name, 1]);
    }
    const { items } = await scene.cluster.client.list(nodes);
    expect(items.filter(({ spec }) => spec?.unschedulable)).toEqual([]);
  });
}

/** From the first message about a host until its node has the new version. */
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
