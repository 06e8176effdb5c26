/**
 * Tests static pods that do not work after an upgrade: the host gets either all its earlier manifests back, or none of
 * them.
 */
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  kubeadmBody,
  stageBody,
  staticPodsBackScript,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { run } from '../../tools/controlplane/run.ts';
import { WHOLE } from '../support/whole.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const SERVERS = NAMES.slice(1);
const MANIFESTS = 'etc/kubernetes/manifests';
const JOURNAL = 'var/lib/refit/static-pods/journal';
let root = '';
/** A host right after its upgrade. Most tests use a copy of this host, because the upgrade runs dozens of processes. */
let upgradedHost = '';

beforeAll(async () => {
  await makeHost();
  await upgrade();
  upgradedHost = root;
});
afterAll(async () => await rm(upgradedHost, { recursive: true }));

beforeEach(makeHost);
afterEach(async () => await rm(root, { recursive: true }));

async function makeHost(): Promise<void> {
  root = await mkdtemp(join(tmpdir(), 'refit-host-'));
  for (const folder of ['run', 'var/lib']) await mkdir(join(root, folder), { recursive: true });
  await put('usr/bin/kubelet', `#!/bin/sh\necho Kubernetes ${OLD}\n`);
  await put('usr/bin/kubeadm', `#!/bin/sh\necho ${OLD}\n`);
  await put('new/kubelet', `#!/bin/sh\necho Kubernetes ${NEW}\n`);
  await kubeadmWrites(NEW, '3.6.11-0');
  await writeManifests(OLD, '3.6.10-0');
}

async function put(path: string, content: string, mode = 0o755): Promise<void> {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), content, { mode });
}
const manifest = (name: string, tag: string): string =>
  `apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: ${name}\n    image: registry.k8s.io/${name}:${tag}\n`;
const path = (name: string): string => `${MANIFESTS}/${name}.yaml`;
const read = async (file: string): Promise<string> => await readFile(join(root, file), 'utf8');

async function writeManifests(version: string, etcd: string): Promise<void> {
  await put(path('etcd'), manifest('etcd', etcd), 0o600);
  for (const name of SERVERS) await put(path(name), manifest(name, version), 0o600);
}

/** Installs a kubeadm that writes all manifests. */
async function kubeadmWrites(version: string, etcd: string, more = ''): Promise<void> {
  const files = [['etcd', etcd] as const, ...SERVERS.map((name) => [name, version] as const)];
  const lines = files.map(
    ([name, tag]) => `printf '%s' '${manifest(name, tag)}' >"$REFIT_ROOT/${path(name)}"`,
  );
  const answer = `[ "$1" != version ] || { echo ${NEW}; exit; }`;
  await put('new/kubeadm', ['#!/bin/sh', answer, ...lines, more, ''].join('\n'));
}

interface Said {
  readonly said: string;
  readonly isDone: boolean;
}

async function onHost(script: string): Promise<Said> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { ok, stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return { said: `${stdout}${stderr}`.trim(), isDone: ok };
}

async function upgrade(rollout = 'r'): Promise<void> {
  const context = { rollout, version: NEW };
  const binaries = { kubeadm: { path: '/new/kubeadm' }, kubelet: { path: '/new/kubelet' } };
  const staged = await onHost(stepScript({ ...context, step: 'stage' }, stageBody({ binaries })));
  expect(staged).toEqual({ said: '', isDone: true });
  const body = kubeadmBody('apply', 'controlPlane', {});
  const done = await onHost(stepScript({ ...context, step: 'kubeadm' }, body));
  expect(done.isDone, done.said).toBe(true);
}
/** Turns the host into a copy of the upgraded host. */
async function becomeUpgraded(): Promise<void> {
  await rm(root, { recursive: true });
  const { ok } = await run('cp', ['-a', upgradedHost, root]);
  expect(ok).toBe(true);
}
const back = async (rollout = 'r'): Promise<Said> => await onHost(staticPodsBackScript(rollout));

async function manifests(): Promise<Record<string, string>> {
  const files = (await readdir(join(root, MANIFESTS))).toSorted();
  return Object.fromEntries(
    await Promise.all(
      files.map(async (file) => [file, await read(`${MANIFESTS}/${file}`)] as const),
    ),
  );
}

/**
 * Installs a program that runs before the program of the host with this name. `$REAL` is the path of the program of the
 * host.
 */
async function instead(name: string, lines: string): Promise<void> {
  const { stdout } = await run('sh', ['-c', `command -v ${name}`]);
  await put(`usr/bin/${name}`, `#!/bin/sh\nREAL=${stdout.trim()}\n${lines}\nexec "$REAL" "$@"\n`);
}
const realAgain = async (name: string): Promise<void> => await rm(join(root, 'usr/bin', name));

const RESTORED = `etcd 3.6.10-0\n${SERVERS.map((name) => `${name} ${OLD}`).join('\n')}`;

test('a roll-back restores all static pod manifests for root only, and the next run repeats the step', async () => {
  const before = await manifests();
  await chmod(join(root, path('kube-scheduler')), 0o644);
  await upgrade();
  const after = await manifests();
  expect(after).not.toEqual(before);
  expect(await back()).toEqual({ said: RESTORED, isDone: true });
  expect(await manifests()).toEqual(before);
  const { mode, uid } = await stat(join(root, path('kube-scheduler')));
  expect([mode & 0o777, uid]).toEqual([0o600, process.getuid?.()]);
  expect(await back()).toEqual({ said: RESTORED, isDone: true });
  await upgrade();
  expect(await manifests()).toEqual(after);
  expect(await back()).toEqual({ said: RESTORED, isDone: true });
  expect(await manifests()).toEqual(before);
});

test('the logs of the pods that did not work are kept, and a link among them is not followed', async () => {
  await becomeUpgraded();
  const folder = 'var/log/pods/kube-system_kube-scheduler-cp1_1/kube-scheduler';
  await put(`${folder}/0.log`, 'unknown flag\n', 0o640);
  await put('etc/shadow', 'secret\n');
  await symlink(join(root, 'etc/shadow'), join(root, folder, '1.log'));
  expect(await back()).toEqual({ said: RESTORED, isDone: true });
  expect(await read('var/lib/refit/static-pods/kube-scheduler.log')).toBe('unknown flag\n');
});

test('a manifest that kubeadm did not change is not replaced', async () => {
  await kubeadmWrites(NEW, '3.6.10-0');
  await upgrade();
  const { ino } = await stat(join(root, path('etcd')));
  expect(await back()).toEqual({ said: RESTORED, isDone: true });
  expect((await stat(join(root, path('etcd')))).ino).toBe(ino);
});

test('a step that runs again keeps what was there before its first run', async () => {
  const before = await manifests();
  const once = '[ -e "$REFIT_ROOT/killed" ] || { : >"$REFIT_ROOT/killed"; kill -9 $$; }';
  await kubeadmWrites(NEW, '3.6.11-0', once);
  await expect(upgrade()).rejects.toThrow('Killed');
  await upgrade();
  expect((await back()).isDone).toBe(true);
  expect(await manifests()).toEqual(before);
});

describe('no manifest goes back', () => {
  async function stays(reason: string, rollout?: string): Promise<void> {
    const now = await manifests();
    const { said, isDone } = await back(rollout);
    expect(said).toContain(reason);
    expect(isDone).toBe(false);
    expect(await manifests()).toEqual(now);
  }

  test('if etcd would go to an earlier minor version', async () => {
    await writeManifests(OLD, '3.5.26-0');
    await upgrade();
    await stays(
      'etcd would go from 3.6.11-0 to 3.5.26-0, and only the same minor version can read the data of etcd',
    );
  });

  test('if an API server would go to an earlier minor version', async () => {
    await writeManifests('v1.35.7', '3.6.11-0');
    await upgrade();
    await stays('kube-apiserver would go from v1.36.3 to v1.35.7');
  });

  test('if nobody can read the version of etcd', async () => {
    await writeManifests(OLD, 'latest');
    await upgrade();
    await stays('etcd would go from 3.6.11-0 to latest');
  });

  test.each<[string, string, () => Promise<unknown>]>([
    [
      'a copy was forged',
      '/var/lib/refit/static-pods/kube-scheduler.yaml does not match its hash in the journal',
      async () => await put('var/lib/refit/static-pods/kube-scheduler.yaml', 'forged', 0o600),
    ],
    [
      'a copy is missing',
      '/var/lib/refit/static-pods/etcd.yaml is not a regular file',
      async () => await rm(join(root, 'var/lib/refit/static-pods/etcd.yaml')),
    ],
    [
      'others may write to a copy',
      'others may write to /var/lib/refit/static-pods/etcd.yaml',
      async () => await chmod(join(root, 'var/lib/refit/static-pods/etcd.yaml'), 0o666),
    ],
    [
      'others may write to the folder of manifests',
      'others may write to /etc/kubernetes/manifests',
      async () => await chmod(join(root, MANIFESTS), 0o777),
    ],
    [
      'somebody changed a manifest meanwhile',
      'kube-scheduler.yaml was changed after kubeadm wrote it',
      async () => await put(path('kube-scheduler'), manifest('kube-scheduler', 'v1.36.4')),
    ],
    [
      'a manifest is missing',
      '/etc/kubernetes/manifests/etcd.yaml is not a regular file',
      async () => await rm(join(root, path('etcd'))),
    ],
    [
      'a manifest is a link',
      '/etc/kubernetes/manifests/etcd.yaml is not a regular file',
      async () => {
        await rm(join(root, path('etcd')));
        await symlink(join(root, 'new/kubeadm'), join(root, path('etcd')));
      },
    ],
    [
      'the journal is missing',
      'this rollout kept no manifests',
      async () => await rm(join(root, JOURNAL)),
    ],
  ])('if %s', async (_what, reason, change) => {
    await becomeUpgraded();
    await change();
    await stays(reason);
  });

  test('if another rollout kept them', async () => {
    await becomeUpgraded();
    await stays('this rollout kept no manifests', 'another');
  });

  test('if they had the version before the rollout', async () => {
    await upgrade('first');
    await upgrade('second');
    await stays(`kube-apiserver.yaml had ${NEW} before this rollout`, 'second');
  });

  test('if a link was there before the upgrade, which takes place all the same', async () => {
    await put('elsewhere.yaml', manifest('etcd', '3.6.10-0'));
    await rm(join(root, path('etcd')));
    await symlink(join(root, 'elsewhere.yaml'), join(root, path('etcd')));
    await upgrade();
    await stays(
      'their manifests were not kept: /etc/kubernetes/manifests/etcd.yaml is not a regular',
    );
  });

  test('if kubeadm changed none', async () => {
    await kubeadmWrites(OLD, '3.6.10-0');
    await upgrade();
    await stays('kubeadm did not change their manifests');
  });

  test('if they cannot be staged', async () => {
    await becomeUpgraded();
    await instead('chmod', 'case $* in *scheduler*) exit 1 ;; esac');
    await stays('cannot stage the manifests');
  });

  // If the last manifest cannot be renamed, the script must undo the most renames.
  const refused = WHOLE ? NAMES : NAMES.slice(-1);
  test.each(refused)('if %s cannot be renamed: those that were are undone', async (name) => {
    await becomeUpgraded();
    await instead('mv', `case $* in *.${name}.yaml.refit*) exit 1 ;; esac`);
    await stays('those of the upgrade are back');
    await realAgain('mv');
    expect(await back()).toEqual({ said: RESTORED, isDone: true });
  });
});

describe('a crash', () => {
  /** All renames of the roll-back: of the four manifests and of the two journals. */
  const renames = [
    'journal.new',
    ...NAMES.map((name) => `.${name}.yaml.refit`),
    'kubeadm.journal.new',
  ];
  const kill = 'kill -9 $PPID; exit 1';

  const crashes = renames.flatMap((file) => [
    [file, 'before', `case $* in *${file}*) ${kill} ;; esac`] as const,
    [file, 'after', `case $* in *${file}*) "$REAL" "$@"; ${kill} ;; esac`] as const,
  ]);
  /** The sample has a journal, a manifest and the other journal, before and after the rename. */
  const tried = crashes.filter((_crash, index) => WHOLE || index % 5 === 1);

  test.each(tried)(
    'at the rename of %s, %s it: the same script goes on',
    async (_file, _when, crash) => {
      const before = await manifests();
      await becomeUpgraded();
      await instead('mv', crash);
      expect((await back()).isDone).toBe(false);
      const half = Object.keys(await manifests()).filter((file) => !file.startsWith('.'));
      expect(half).toEqual(Object.keys(before));
      await realAgain('mv');
      expect(await back()).toEqual({ said: RESTORED, isDone: true });
      expect(await manifests()).toEqual(before);
    },
  );

  test('in the middle is finished before kubeadm runs again', async () => {
    const before = await manifests();
    await becomeUpgraded();
    const after = await manifests();
    await instead('mv', `case $* in *.kube-scheduler.yaml.refit*) ${kill} ;; esac`);
    await back();
    await realAgain('mv');
    await upgrade();
    expect(await manifests()).toEqual(after);
    expect(await back()).toEqual({ said: RESTORED, isDone: true });
    expect(await manifests()).toEqual(before);
  });

  test('while it undoes: the next one undoes the rest', async () => {
    const before = await manifests();
    await becomeUpgraded();
    // The fourth rename fails. Then the host crashes when the script restores the second manifest.
    await instead(
      'mv',
      [
        'case $* in *.kube-scheduler.yaml.refit*) exit 1 ;; esac',
        'case $* in *.kube-apiserver.yaml.refit*) ',
        '  if grep -q "state undoing" "$REFIT_ROOT/var/lib/refit/static-pods/journal"; then kill -9 $PPID; exit 1; fi ;; esac',
      ].join('\n'),
    );
    expect((await back()).isDone).toBe(false);
    expect(await read(JOURNAL)).toContain('state undoing');
    await realAgain('mv');
    expect(await back()).toEqual({ said: RESTORED, isDone: true });
    expect(await manifests()).toEqual(before);
  });

  test('in the middle, then a change by hand: nothing of it is lost, and kubeadm is the way out', async () => {
    await becomeUpgraded();
    const after = await manifests();
    await instead('mv', `case $* in *.kube-scheduler.yaml.refit*) ${kill} ;; esac`);
    await back();
    await realAgain('mv');
    const own = manifest('kube-scheduler', 'v1.36.4');
    await put(path('kube-scheduler'), own);
    expect((await back()).said).toContain('kube-scheduler.yaml was changed after kubeadm wrote it');
    expect(await read(path('kube-scheduler'))).toBe(own);
    await rm(join(root, 'var/lib/refit/kubeadm.journal'));
    await upgrade();
    for (const name of NAMES) expect(await read(path(name))).toBe(after[`${name}.yaml`]);
  });
});
