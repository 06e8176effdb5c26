/** Tests what `refit kubeadm` refuses before any host is changed, over SSH and on a real API server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { StartServer } from '../../sandbox/sshd/server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import type { UpgradeReport } from '../../src/dialects/kubeadm/command/report.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps, leases, nodes } from '../../src/kube/resources.ts';
import { FROM, openScene, type Scene, TO } from '../support/kubeadm/suite.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { MANIFEST } from './kubeadm-hosts.ts';

interface Kubeconfig {
  clusters: { readonly name: string; readonly cluster: object }[];
}

// One SSH server is enough here, because the refusals do not depend on the server. kubeadm-killed.test.ts tests runs
// that are killed again and again over each server.
describe('over a server in JavaScript', () => {
  describe('what is refused', () => refusals(startJavascriptServer));
});

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
      'Refit refuses to skip a minor version and names the rule',
      'v1.38.0',
      () => undefined,
      1,
      /^REFIT_REFUSED: .*R2: API servers are at v1\.36\.2: go to v1\.37 first, then to v1\.38\.0; no setting allows this: set version to the next minor version, .*\n$/,
    ],
    [
      'an unknown field',
      TO,
      firstHost({ adress: 'x' }),
      2,
      /^REFIT_FILE: .*hosts\[0\]: it has no member adress \(did you mean address\?\) .*\n$/,
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

  test('a label of KubeOne, with who wrote it and when; with --force it is a warning', async () => {
    const label = 'kubeone.io/upgrade-in-progress';
    await kubectlAs('admin', ['label', 'node', 'w1', `${label}=`, '--field-manager=kubeone']);
    const manifest = await scene.cluster.manifest(TO);
    const refused = scene.refit('plan', '-m', manifest);
    const where = String.raw`w1 \(written by kubeone, last at 2\d{3}-\S+Z\)`;
    expect([await refused.ended, refused.stderr]).toEqual([
      1,
      expect.stringMatching(
        `F4: a KubeOne upgrade is in progress on ${where}; finish it, then remove the label ${label}; if that run will not continue, --force allows this`,
      ),
    ]);
    const forced = scene.refit('plan', '-m', manifest, '--force');
    expect([await forced.ended, forced.stdout]).toEqual([
      0,
      expect.stringMatching(`warning F4: --force takes over the label ${label} on ${where}`),
    ]);
    await kubectlAs('admin', ['label', 'node', 'w1', `${label}-`]);
  });

  test('Refit refuses an upgrade to a new minor version if a policy forbids drains', async () => {
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

  test('a plan lists at once all problems on hosts that would stop apply', async () => {
    const path = await scene.cluster.manifest(TO, (each) => {
      const [first, ...rest] = each['hosts'] as object[];
      each['hosts'] = [{ ...first, kubeadm: { patches: '/nowhere' } }, ...rest];
      each['binaries'] = {
        kubeadm: { path: `/opt/kubernetes/${FROM}/kubeadm` },
        kubelet: { path: `/opt/kubernetes/${TO}/kubelet`, sha256: '0'.repeat(64) },
      };
    });
    const run = scene.refit('plan', '-o', 'json', '-m', path);
    const remedy = 'no setting allows this: correct that on the host, or in the manifest';
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

    test('if the API server does not answer, a plan says why and what apply would do first', async () => {
      const run = scene.refit('plan', '-m', path);
      const cure = 'The API server does not answer without that manifest: restore it first.\n';
      expect([await run.ended, run.stderr, run.stdout]).toEqual([
        0,
        '',
        expect.stringMatching(`${away}\n${cure}$`),
      ]);
      await rename(away, manifestFile());
    });

    test('plan waits while kubeadm replaces the API server, and then shows the upgrade of each host', async () => {
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

  test('if Refit cannot log in to hosts, it says why for each of them', async () => {
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
    const address = known[3]?.split(' ')[0] ?? '';
    const key = known[0]?.split(' ').slice(1).join(' ') ?? '';
    // In this file, the host key of cp2 is missing and w2 has the key of another host.
    await writeFile(
      join(manifest, '../changed'),
      [known[0], known[2], `${address} ${key}`, ''].join('\n'),
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

  test('apply refuses a plan that does not have the digest given with --digest', async () => {
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

  test('if the preflight of kubeadm fails on one host, the run ends before any host is cordoned', async () => {
    const { hosts, client } = scene.cluster;
    await writeFile(
      join(scene.cluster.host('cp2').root, 'images-missing'),
      'registry.local:5000/kube-scheduler',
    );
    const run = scene.refit('apply', '--yes', '-m', await scene.cluster.manifest(TO));
    const line = /^REFIT_REFUSED: cp2: not ready, nothing was changed: .*ImagePull.*scheduler \(/;
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
