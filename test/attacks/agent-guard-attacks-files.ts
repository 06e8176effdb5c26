/** The attacks on the guards of paths, of the state directory, of kept files and of files of root. */
import { execFile } from 'node:child_process';
import * as files from 'node:fs/promises';
import { promisify } from 'node:util';
import { changeHost } from '../../src/agent/configuration/change-host.ts';
import { readRootFile, writeRootFile } from '../../src/agent/configuration/root-file.ts';
import { readFlagsFile } from '../../src/agent/flags-file.ts';
import { findProcess } from '../../src/agent/service/processes.ts';
import { keptBinary } from '../../src/agent/state/kept-binary.ts';
import { assertFree } from '../../src/agent/state/lock.ts';
import { openStateDirectory } from '../../src/agent/state/state-directory.ts';
import { assertTrustedConfig } from '../../src/agent/state/trusted-config.ts';
import { assertTrustedPath, fileTrust, isEmptyStaff } from '../../src/agent/state/trusted-path.ts';
import type { ClusterConfig } from '../../src/kube/config/cluster-config.ts';
import {
  type Attack,
  any,
  hashOf,
  NOBODY,
  type Scene,
  TOOLS,
  works,
} from './agent-guard-scenes.ts';

const trusts = async (path: string): Promise<boolean> => await works(assertTrustedPath(path));

/** Puts a file of root into a folder with this mode. */
async function inFolder(scene: Scene, mode: number, name = 'open'): Promise<string> {
  const path = await scene.put(`${name}/file`);
  await scene.folder(name, mode);
  return path;
}

async function ofNobody(path: string): Promise<string> {
  await files.lchown(path, NOBODY, NOBODY);
  return path;
}

async function modeOf(path: string): Promise<number> {
  return (await files.stat(path)).mode & 0o777;
}

const PATHS: Readonly<Record<string, Attack>> = {
  'trusted-user': async (scene) => {
    const own = await scene.put('own');
    await files.chown(own, 100, 100);
    return await any([trusts(own), trusts(await ofNobody(await scene.put('other')))]);
  },
  'trusted-owner': async (scene) => {
    const path = await scene.put('theirs/file');
    await ofNobody(scene.at('theirs'));
    return await trusts(path);
  },
  'trusted-target': async (scene) => {
    await files.symlink(await inFolder(scene, 0o777), scene.at('link'));
    return await trusts(scene.at('link'));
  },
  'trusted-parents': async (scene) => await trusts(await inFolder(scene, 0o777)),
  'trusted-sticky': async (scene) =>
    await any([trusts(await scene.folder('sticky', 0o1777)), trusts(await inFolder(scene, 0o777))]),
  'others-write': async (scene) => await trusts(await scene.put('file', '', 0o646)),
  'group-writes': async (scene) => {
    const path = await scene.put('file', '', 0o664);
    await files.chown(path, 0, NOBODY);
    return await trusts(path);
  },
  'staff-members': async (scene) => {
    const host = { group: 'staff:x:50:', passwd: 'root:x:0:0', nsswitch: 'group: files' };
    const forged = [
      { nsswitch: 'group: files ldap' },
      { group: '+:::\nstaff:x:50:' },
      { passwd: 'evil:x:1000:50' },
      { group: 'staff:password:50:' },
      { group: 'staff:x:50:evil' },
    ].map(async (part, index) => {
      const { group, passwd, nsswitch } = { ...host, ...part };
      const texts = { group, passwd, 'nsswitch.conf': nsswitch };
      for (const [name, text] of Object.entries(texts)) await scene.put(`${index}/${name}`, text);
      return await isEmptyStaff(50, scene.at(String(index)));
    });
    return await any(forged);
  },
  'staff-name': async (scene) => {
    await scene.put('etc/group', 'utmp:x:50:');
    return await any([isEmptyStaff(50, scene.at('etc')), isEmptyStaff(51, scene.at('etc'))]);
  },
  'replaceable-file': async (scene) => {
    const missing = `${await scene.folder('open', 0o777)}/missing`;
    const paths = [missing, await scene.put('file', '', 0o666)];
    return await any(paths.map(async (path) => await works(fileTrust.assertReplaceable(path))));
  },
  'made-parent': async (scene) =>
    await works(fileTrust.makePrivate(`${await scene.folder('open', 0o777)}/own`)),
  'made-link': async (scene) => {
    await files.symlink(await scene.folder('other'), scene.at('link'));
    return await works(fileTrust.makePrivate(scene.at('link')));
  },
  'made-owner': async (scene) =>
    await works(fileTrust.makePrivate(await ofNobody(await scene.folder('theirs', 0o700)))),
  'made-private': async (scene) => {
    await fileTrust.makePrivate(await scene.folder('own', 0o755));
    return (await modeOf(scene.at('own'))) !== 0o700;
  },
};

/** Resolves with true if the agent uses a kubeconfig with this file. */
async function believes(config: Partial<Pick<ClusterConfig, 'files' | 'user'>>): Promise<boolean> {
  return await works(assertTrustedConfig({ files: [], user: {}, ...config } as ClusterConfig));
}

const opens = async (scene: Scene): Promise<boolean> =>
  await works(openStateDirectory(scene.at('state'), scene.at('run')));

const STATE: Readonly<Record<string, Attack>> = {
  'config-named': async (scene) => {
    const tokenFile = await scene.put('token', '', 0o666);
    return await believes({ user: { tokenFile } });
  },
  'config-path': async (scene) =>
    await believes({ files: [await scene.put('kubeconfig', '', 0o666)] }),
  'flags-path': async (scene) =>
    await works(readFlagsFile(await scene.put('agent.yaml', 'require-https: false\n', 0o666))),
  'state-path': async (scene) => {
    await scene.folder('state', 0o777);
    return await opens(scene);
  },
  'state-entries': async (scene) => {
    await scene.folder('state', 0o700);
    await files.symlink(await scene.put('other'), scene.at('state/journal.json.new'));
    return await opens(scene);
  },
  'state-files': async (scene) => {
    await scene.put('state/journal.json', '', 0o666);
    const isOpen = await opens(scene);
    await files.chmod(scene.at('state/journal.json'), 0o600);
    await ofNobody(scene.at('state/journal.json'));
    return isOpen || (await opens(scene));
  },
  'state-private': async (scene) => {
    await openStateDirectory(scene.at('deep/state'), scene.at('run'));
    const modes = ['deep', 'deep/state', 'run'].map(async (name) => await modeOf(scene.at(name)));
    return (await Promise.all(modes)).some((mode) => mode !== 0o700);
  },
  'lock-holder': async (scene) => {
    const holder = findProcess(await scene.waiter(['worker']));
    return await works(assertFree(await scene.put('lock', JSON.stringify(holder))));
  },
};

/** A kept binary with the content `old`, and its path. */
async function keptIn(scene: Scene) {
  const path = await scene.put('k0s.previous', 'old');
  const kept = keptBinary({ ...TOOLS, record: scene.at('kept.json'), files });
  const next = { path, version: 'v1.36.3+k0s.0', keepMs: undefined };
  await kept.replace(next, async () => await Promise.resolve());
  return { path, kept };
}

const KEPT: Readonly<Record<string, Attack>> = {
  'kept-verified': async (scene) => {
    const { path, kept } = await keptIn(scene);
    await files.writeFile(path, 'evil');
    return await works(kept.verify(path));
  },
  'kept-taken': async (scene) => {
    const { path, kept } = await keptIn(scene);
    const take = async (): Promise<boolean> =>
      await kept.take(path, hashOf('old'), await scene.put('staged'));
    await files.rename(path, scene.at('other'));
    await files.symlink(scene.at('other'), path);
    const followed = await take();
    await files.rm(path);
    await files.writeFile(path, 'evil');
    return followed || (await take());
  },
  'kept-needed': async (scene) => {
    const { path, kept } = await keptIn(scene);
    await kept.settle();
    return await kept.sacrifice(await scene.put('k0s', ''), path);
  },
  'kept-reported': async (scene) => {
    const { path, kept } = await keptIn(scene);
    await files.writeFile(path, 'evil');
    return (await kept.facts())?.sha256 !== undefined;
  },
};

async function rootFile(scene: Scene, text = 'secret'): Promise<string> {
  return await scene.put('etc/file', text);
}

const ROOT_FILES: Readonly<Record<string, Attack>> = {
  'root-folder': async (scene) =>
    await works(readRootFile(`${await scene.folder('open', 0o777)}/missing`)),
  'root-link': async (scene) => {
    await rootFile(scene);
    await files.symlink(scene.at('etc'), scene.at('link'));
    return await works(readRootFile(scene.at('link/file')));
  },
  'root-regular': async (scene) => {
    const path = await rootFile(scene);
    await files.link(path, scene.at('second'));
    await promisify(execFile)('mkfifo', ['-m', '600', scene.at('etc/pipe')]);
    return await any(
      [path, scene.at('etc/pipe')].map(async (each) => await works(readRootFile(each))),
    );
  },
  'root-writable': async (scene) =>
    await works(readRootFile(await scene.put('etc/file', '', 0o666))),
  'root-again': async (scene) => {
    const path = await rootFile(scene);
    const state = await readRootFile(path);
    await scene.folder('etc', 0o777);
    return await works(writeRootFile(path, state));
  },
  'keys-user': async (scene) => {
    const secret = await rootFile(scene);
    await scene.put('etc/passwd', `evil:x:${NOBODY}:${NOBODY}::/home:/bin/sh\n`);
    await ofNobody(await scene.folder('home'));
    await ofNobody(await scene.folder('home/.ssh'));
    await files.symlink(secret, scene.at('home/.ssh/authorized_keys.refit'));
    const content = Buffer.from('evil').toString('base64');
    const nothing = async (): Promise<void> => await Promise.resolve();
    const parts = { root: scene.directory, journal: scene.at('journal') };
    const items = [{ name: 'user:evil', content, mode: 0o600 }];
    const change = { ...parts, checkKubelet: nothing, restartKubelet: nothing };
    await works(changeHost(change, items, TOOLS.abort));
    return (await files.readFile(secret, 'utf8')) === 'evil';
  },
};

export const FILE_ATTACKS: Readonly<Record<string, Attack>> = {
  ...PATHS,
  ...STATE,
  ...KEPT,
  ...ROOT_FILES,
};
