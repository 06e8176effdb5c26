/** Tests the files that a kubeadm manifest names on a host, if another user may change them before or after a check. */
import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, symlink } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findKubeadm, localShells } from '../../src/dialects/kubeadm/agent/perform-on-kubeadm.ts';
import { restoreFactsScript } from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import type { Shells } from '../../src/dialects/kubeadm/host/host.ts';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  diffScript,
  kubeadmBody,
  prepareScript,
  probeScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { attackedManifest, KubeadmRig, VERSION } from './kubeadm-rig.ts';
import { attackAsNobody, NOBODY } from './rig.ts';

let rig: KubeadmRig;
beforeEach(async () => {
  rig = await KubeadmRig.create();
});
afterEach(async () => await rig[Symbol.asyncDispose]());

const GOOD = `#!/bin/sh\ncase $1 in --version) echo "Kubernetes ${VERSION}" ;; upgrade) echo 'the diff' ;; *) echo ${VERSION} ;; esac\n`;
const sha256 = createHash('sha256').update(GOOD).digest('hex');
const PATHS = { kubeadm: { path: '/srv/kubeadm' }, kubelet: { path: '/srv/kubelet' } };

/** The scripts, by name, in which root runs the file or copies it. */
const SCRIPTS = {
  'refit kubeadm plan': (given: ReturnType<typeof attackedManifest>) =>
    probeScript(given.manifest, given.host, Date.now()),
  'the diff': (given: ReturnType<typeof attackedManifest>) =>
    diffScript(given.manifest, given.host),
  'the staging': (given: ReturnType<typeof attackedManifest>) =>
    stepScript({ step: 'stage', rollout: 'r', version: VERSION }, stageBody(given.manifest)),
  'the checks of kubeadm': (given: ReturnType<typeof attackedManifest>) =>
    prepareScript(given.manifest, given.host, false),
};

test.each(Object.entries(SCRIPTS).slice(0, 2))(
  'whoever owns the folder swaps the file right after its hash was taken: %s runs what was hashed',
  async (_name, scriptOf) => {
    for (const name of ['kubeadm', 'kubelet']) await rig.put(`srv/${name}`, GOOD, 0o755);
    await rig.put('evil', rig.evil, 0o755);
    const swap = `cp ${rig.at('evil')} ${rig.at('srv/kubeadm')}; cp ${rig.at('evil')} ${rig.at('srv/kubelet')}`;
    await rig.program('sha256sum', `PATH=/usr/bin:/bin; sha256sum "$@"; ${swap}`);
    const own = { path: '/srv/kubeadm', sha256 };
    await rig.onHost(scriptOf(attackedManifest({ kubeadm: own, kubelet: own })));
    expect(rig.isOwned).toBe(false);
  },
);

test('what is checked lies in a folder of root, and nothing of it stays on the host', async () => {
  const looks = 'stat -c %a "$REFIT_ROOT/var/lib/refit" >>"$REFIT_ROOT/modes"\n';
  for (const name of ['kubeadm', 'kubelet'])
    await rig.put(`srv/${name}`, GOOD.replace('\n', `\n${looks}`), 0o755);
  const given = attackedManifest(PATHS);
  const plan = probeScript(given.manifest, given.host, Date.now());
  expect(await rig.onHost(plan)).not.toContain('binaries.');
  expect(await rig.onHost(diffScript(given.manifest, given.host))).toBe('the diff\n');
  expect(await rig.onHost('ls "$REFIT_ROOT/var/lib"')).toBe('');
  expect(await rig.onHost('sort -u "$REFIT_ROOT/modes"')).toBe('700\n');
  // A directory that exists already stays, and gets the mode 700.
  await rig.put('var/lib/refit/kubeadm.journal', 'x');
  await rig.onHost(`${plan}${looks}`);
  expect(await rig.onHost('ls "$REFIT_ROOT/var/lib/refit"')).toBe('kubeadm.journal\n');
  expect(await rig.onHost('sort -u "$REFIT_ROOT/modes"')).toBe('700\n');
});

const OPEN: readonly (readonly [string, () => Promise<unknown>, string])[] = [
  [
    'the file',
    async () => await chmod(rig.at('srv/kubeadm'), 0o777),
    'others may write to /srv/kubeadm: run chmod go-w /srv/kubeadm',
  ],
  [
    'its folder',
    async () => await chmod(rig.at('srv'), 0o777),
    'others may write to /srv: run chmod go-w /srv',
  ],
];

test.each(
  Object.entries(SCRIPTS).flatMap(([name, scriptOf]) =>
    OPEN.map(([what, open, problem]) => [what, name, open, problem, scriptOf] as const),
  ),
)('%s is open to others: %s runs nothing of it', async (_what, name, open, problem, scriptOf) => {
  await rig.put('srv/kubelet', GOOD, 0o755);
  await rig.put('srv/kubeadm', rig.evil, 0o755);
  await open();
  const said = await rig.onHost(scriptOf(attackedManifest(PATHS)));
  expect(rig.isOwned).toBe(false);
  expect(said).toContain(name === 'the diff' ? '' : `binaries.kubeadm.path: ${problem}`);
});

attackAsNobody('a folder above, a link, and the file of another user are refused', async () => {
  const plan = async (path: string): Promise<string> => {
    const given = attackedManifest({ kubeadm: { path }, kubelet: { path } });
    return await rig.onHost(probeScript(given.manifest, given.host, Date.now()));
  };
  await rig.put('users/alice/bin/kubeadm', rig.evil, 0o755);
  await chown(rig.at('users/alice'), NOBODY, NOBODY);
  const belongs = (path: string) =>
    `binaries.kubeadm.path: ${path} belongs to user ${NOBODY}: use a path that only root can change`;
  expect(await plan('/users/alice/bin/kubeadm')).toContain(belongs('/users/alice'));
  expect(await plan('/users/../users/./alice/bin/kubeadm')).toContain(belongs('/users/alice'));
  await mkdir(rig.at('opt'));
  await symlink('../users/alice/bin', rig.at('opt/bin'));
  expect(await plan('/opt/bin/kubeadm')).toContain(belongs('/users/alice'));
  await rig.put('own/kubeadm', rig.evil, 0o755);
  await chown(rig.at('own/kubeadm'), NOBODY, NOBODY);
  expect(await plan('/own/kubeadm')).toContain(belongs('/own/kubeadm'));
  // The directory is like /tmp: nobody can replace a file of root in it.
  await chmod(rig.at('own'), 0o1777);
  await chown(rig.at('own/kubeadm'), 0, 0);
  await rig.put('own/kubeadm', GOOD, 0o755);
  expect(await plan('/own/kubeadm')).not.toContain('binaries.');
  expect(rig.isOwned).toBe(false);
});

const OPTIONS = [
  [
    'config',
    'kubeadm.config: others may write to /srv/kubeadm.yaml: run chmod go-w /srv/kubeadm.yaml',
    'srv/kubeadm.yaml',
  ],
  ['config', 'kubeadm.config: others may write to /srv: run chmod go-w /srv', 'srv'],
  [
    'config',
    'kubeadm.config names patches: others may write to /patches: run chmod go-w /patches',
    'patches',
  ],
  ['patches', 'kubeadm.patches: others may write to /patches: run chmod go-w /patches', 'patches'],
  [
    'patches',
    'kubeadm.patches: others may write to /patches/etcd.json: run chmod go-w /patches/etcd.json',
    'patches/etcd.json',
  ],
] as const;

test.each(OPTIONS)('the option %s: %s', async (option, problem, open) => {
  for (const name of ['kubeadm', 'kubelet']) await rig.put(`srv/${name}`, GOOD, 0o755);
  await rig.program('kubeadm', `[ "$1" = version ] || touch ${rig.at('owned')}`);
  await rig.put('patches/etcd.json', '[]');
  // The folder in the comment of this text does not count.
  const names = `# directory: /no\nnode:\n  patches:\n    directory: "${rig.at('patches')}" # ours\n`;
  await rig.put('srv/kubeadm.yaml', names);
  const path = rig.at(option === 'config' ? 'srv/kubeadm.yaml' : 'patches');
  const given = attackedManifest(PATHS, { [option]: path });
  const step = () =>
    stepScript(
      { step: 'kubeadm', rollout: 'r', version: VERSION },
      kubeadmBody('node', 'worker', { [option]: path }),
    );
  const plan = () => probeScript(given.manifest, given.host, Date.now());
  expect(
    parseFacts(await rig.onHost(plan()))
      .problems.map(({ message }) => message)
      .join(),
  ).not.toContain('kubeadm.');
  await chmod(rig.at(open), 0o777);
  // The check also reports the open folder of the binaries.
  const problems = parseFacts(await rig.onHost(plan())).problems.map(({ message }) => message);
  expect(problems).toContain(problem);
  expect(await rig.onHost(prepareScript(given.manifest, given.host, false))).toBe(`${problem}\n`);
  expect(await rig.onHost(step())).toBe(`${problem}\n`);
  expect(rig.isOwned).toBe(false);
});

test('an agent does not start with a --kubeadm-config that others may change, nor with patches of others', async () => {
  const stop = new AbortController();
  const local = localShells(stop.signal);
  // PATH begins with the folder of the test, so its programs run.
  const path = `PATH=${rig.at('usr/bin')}:$PATH\n`;
  const shells: Shells = { run: async (on, script) => await local.run(on, `${path}${script}`) };
  const config = rig.at('srv/upgrade.yaml');
  const start = async () => await findKubeadm('w1', rig.root, shells, { config });
  // The file may be created after the start of the agent.
  expect(await start()).toEqual({ name: 'w1', role: 'worker' });
  await rig.put('patches/etcd.json', '[]');
  await rig.put('srv/upgrade.yaml', `node: { patches: { directory: ${rig.at('patches')} } }\n`);
  expect(await start()).toEqual({ name: 'w1', role: 'worker' });
  await chmod(rig.at('patches'), 0o777);
  await expect(start()).rejects.toThrow(
    `--kubeadm-config: kubeadm.config names patches: others may write to ${rig.at('patches')}: run chmod go-w ${rig.at('patches')}`,
  );
  await chmod(config, 0o666);
  await expect(start()).rejects.toThrow(`others may write to ${config}`);
});

test('a snapshot of etcd that others may change is not restored', async () => {
  await rig.put('etc/kubernetes/manifests/etcd.yaml', '    - --data-dir=/data\n    - --name=a\n');
  await rig.program('etcdutl', 'exit 0');
  await rig.put('srv/snap.db', 'x');
  await chmod(rig.at('srv'), 0o777);
  const said = await rig.onHost(restoreFactsScript({ snapshot: '/srv/snap.db', stamp: 'one' }));
  expect(said).toBe('/srv/snap.db: others may write to /srv: run chmod go-w /srv\n');
});
