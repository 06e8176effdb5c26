/**
 * Tests the guide that restores a snapshot of etcd on k0s, with a real etcd. The test reads the commands from the guide
 * itself.
 */
import * as fsPromises from 'node:fs/promises';
import { access, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeSnapshot } from '../../src/agent/snapshot/take-snapshot.ts';
import { fileTrust } from '../../src/agent/state/trusted-path.ts';
import type { EtcdSnapshot } from '../../src/signal/annotations.ts';
import { systemClock } from '../../src/util/clock.ts';
import { run } from '../../tools/controlplane/run.ts';
import { ROOT } from '../repo/tree.ts';
import {
  type EtcdMembers,
  NAMES,
  pkiOf,
  startEtcdMembers,
} from '../support/kubeadm/etcd-members.ts';
import { buildTool } from './build-tool.ts';

const NAME = 'cp1';
const OLD_BINARY = 'usr/local/bin/k0s.previous';
const BINARY = 'usr/local/bin/k0s';

let members: EtcdMembers;
/** The root directory of the controller. Its `var/lib` is the data directory of k0s, because etcd is in it already. */
let host: string;
/** The certificate and key of the person who keeps the backups. */
let keys: string;

beforeAll(async () => {
  members = await startEtcdMembers();
  host = members.folderOf(NAME);
  keys = join(members.root, 'keys');
  for (const directory of [keys, join(host, 'usr/local/bin'), join(host, 'bin')])
    await mkdir(directory, { recursive: true });
  const files = ['-keyout', 'key.pem', '-out', 'cert.pem', '-subj', '/CN=backups', '-days', '1'];
  await succeed('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files], keys);
  await playHost();
}, 600_000);
afterAll(async () => await members[Symbol.asyncDispose]());

async function succeed(program: string, args: readonly string[], directory: string) {
  const script = 'cd "$0" && exec "$@"';
  const { ok, stdout, stderr } = await run('sh', ['-c', script, directory, program, ...args]);
  if (!ok) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The arguments of curl for a call of the member on this host. */
function call(path: string): string[] {
  const pki = join(host, pkiOf(NAME));
  const files = { cacert: 'ca.crt', cert: 'healthcheck-client.crt', key: 'healthcheck-client.key' };
  const flags = Object.entries(files).flatMap(([flag, file]) => [`--${flag}`, `${pki}/${file}`]);
  return ['-sSf', ...flags, `${members.urlOf(NAME)}/v3/${path}`];
}

/**
 * Puts stand-ins for k0s and systemd on the host. `k0s backup` asks etcd for its snapshot. `k0s restore` treats an
 * archive as pkg/backup of k0s does: it refuses to replace existing data, creates a cluster of one member from
 * etcd-snapshot.db, and copies the other files.
 */
async function playHost(): Promise<void> {
  const etcdutl = await buildTool('etcdutl');
  const backup = join(ROOT, 'sandbox/hosts/backup.sh');
  const data = join(host, 'var/lib');
  const k0s = `#!/bin/bash
set -euo pipefail
[ "$(basename "$(readlink -f "$0")")" = k0s ]
verb=$1
shift
case $verb in
backup)
  played=$(mktemp -d "$TMPDIR/playedXXXXXX")
  mkdir -p "$played/etcd/member/snap"
  cp -r ${data}/pki "$played/pki"
  curl ${call('maintenance/snapshot').join(' ')} -d '{}' | sed -n 's/.*"blob":"\\([^"]*\\)".*/\\1/p' | base64 -d >"$played/etcd/member/snap/db"
  [ "$1 $2 $3 $4" = "--save-path - --data-dir ${data}" ]
  sh ${backup} "$1" "$2" "$3" "$played" "$5" "$6"
  rm -rf "$played"
  ;;
restore)
  work=$(mktemp -d ${members.root}/k0s-backupXXXXXX)
  tar -xzf "$1" -C "$work"
  ${etcdutl} snapshot restore "$work/etcd-snapshot.db" --data-dir ${data}/etcd --name ${NAME} --initial-cluster ${NAME}=https://127.0.0.1:2380 --initial-advertise-peer-urls https://127.0.0.1:2380
  cp -r "$work/pki" ${data}/pki
  rm -rf "$work"
  ;;
esac
`;
  await mkdir(join(data, 'pki'));
  await writeFile(join(data, 'pki/ca.key'), 'the key of the cluster');
  for (const file of [BINARY, OLD_BINARY]) await writeFile(join(host, file), k0s, { mode: 0o755 });
  await writeFile(
    join(host, 'bin/systemctl'),
    `#!/bin/sh\necho "$*" >>${members.root}/services\n`,
    {
      mode: 0o755,
    },
  );
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function ask(path: string, body: object): Promise<{ kvs?: { value: string }[] }> {
  const answer = await succeed('curl', [...call(path), '-d', JSON.stringify(body)], host);
  return JSON.parse(answer) as { kvs?: { value: string }[] };
}

async function put(key: string, value: string): Promise<void> {
  await ask('kv/put', { key: base64(key), value: base64(value) });
}

async function valueOf(key: string): Promise<string | undefined> {
  const [found] = (await ask('kv/range', { key: base64(key) })).kvs ?? [];
  return found && Buffer.from(found.value, 'base64').toString();
}

/** Takes a snapshot as the agent does, encrypted for the certificate. */
async function take(): Promise<Required<Pick<EtcdSnapshot, 'path' | 'sha256'>>> {
  const statusSocket = join(members.root, 'status.sock');
  const stateDirectory = join(host, 'state');
  await mkdir(stateDirectory, { mode: 0o700 });
  const certificate = await readFile(join(keys, 'cert.pem'), 'utf8');
  const server = createServer().listen(statusSocket);
  try {
    const { path = '', sha256 = '' } = await takeSnapshot(
      {
        binary: join(host, BINARY),
        version: 'v1.37.0+k0s.0',
        dataDirectory: join(host, 'var/lib'),
        statusSocket,
        stateDirectory,
        reserveBytes: 0,
        rules: { require: true, certificate },
      },
      { clock: systemClock, files: fsPromises, fileTrust, abort: new AbortController().signal },
    );
    return { path, sha256 };
  } finally {
    server.close();
  }
}

/**
 * Returns the commands that a reader types on the host, in the order of the guide: each line of a code block, and each
 * command in a sentence.
 */
async function commandsOfGuide(): Promise<string[]> {
  const page = await readFile(join(ROOT, 'docs/roll-back.md'), 'utf8');
  const [, section = ''] = page.split('### Restore a snapshot\n');
  const typed =
    /^ *```sh\n(?<block>[^`]*)^ *```|`(?<inline>(?:systemctl|sha256sum|openssl) [^`]*)`/gm;
  return [...section.matchAll(typed)].flatMap(({ groups = {} }) =>
    (groups['block'] ?? groups['inline'] ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== ''),
  );
}

test('the guide restores what etcd had when the snapshot was taken, and nothing later', async () => {
  await put('early', 'kept');
  const { path, sha256 } = await take();
  await put('early', 'overwritten');
  await put('late', 'lost');
  // The upgrade has installed a k0s that cannot restore a snapshot.
  await writeFile(join(host, BINARY), '#!/bin/sh\nexit 1\n', { mode: 0o755 });

  const commands = await commandsOfGuide();
  const names = commands.map((line) => line.split(' ').slice(0, 2).join(' '));
  expect(names).toEqual([
    'systemctl stop',
    'mv /var/lib/k0s',
    'sha256sum FILE',
    'openssl cms',
    'cp -a',
    'k0s restore',
    'systemctl start',
    'k0s kubectl',
  ]);
  // The operator has the key on another machine. So the operator copies the encrypted file there, and copies the
  // archive back.
  const file = join(keys, 'archive.tar.gz');
  await copyFile(path, `${file}.cms`);
  for (const line of commands) {
    const isEncrypted = line.startsWith('sha256sum');
    const placed = line
      .replaceAll('/var/lib/k0s', join(host, 'var/lib'))
      .replaceAll('/usr/local/bin', join(host, 'usr/local/bin'))
      .replaceAll('FILE', isEncrypted ? `${file}.cms` : file);
    if (line.startsWith('mv'))
      await Promise.all(NAMES.map(async (name) => await members.stop(name)));
    const path = `${host}/bin:${host}/usr/local/bin:${process.env['PATH']}`;
    const script = `PATH=${path}\n${placed}`;
    const { ok, stdout, stderr } = await run('bash', ['-c', `cd ${keys}\n${script}`]);
    expect({ line, ok, stderr: ok ? '' : stderr }).toEqual({ line, ok: true, stderr: '' });
    if (isEncrypted) expect(stdout.split(' ')[0]).toBe(sha256);
    if (line.startsWith('mv')) await mkdir(join(host, 'var/lib'), { recursive: true });
  }
  expect(await readFile(join(members.root, 'services'), 'utf8')).toBe(
    'stop k0scontroller refit-agent\nstart k0scontroller\n',
  );
  expect(await readFile(join(host, 'var/lib/pki/ca.key'), 'utf8')).toBe('the key of the cluster');
  await access(join(host, 'var/lib.before-restore/etcd/member'));

  await members.start(NAME);
  expect(await valueOf('early')).toBe('kept');
  expect(await valueOf('late')).toBeUndefined();
  // The restored etcd has no other member. The other controllers join as new members.
  expect((await ask('cluster/member/list', {})) as object).toMatchObject({
    members: [{ name: NAME }],
  });
});
