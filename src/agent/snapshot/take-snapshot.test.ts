/** Tests snapshots of etcd. The script that replaces `k0s backup` accepts only the documented command line. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fsPromises from 'node:fs/promises';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { AgentSnapshot } from '../../signal/annotations.ts';
import { findProcess } from '../service/processes.ts';
import { fileTrust } from '../state/trusted-path.ts';
import { keptSnapshot, takeSnapshot } from './take-snapshot.ts';

/** Works like k0s: creates a folder in TMPDIR and puts the snapshot into it. `ARCHIVE` removes the folder at the end. */
const BACKUP = `
[ "$*" = "backup --save-path - --data-dir $DATA --status-socket $RUN/status.sock" ] || { echo "unknown flags $*" >&2; exit 1; }
work=$(mktemp -d "$TMPDIR/k0s-backupXXXXXX")
cp "$DATA/etcd/member/snap/db" "$work/etcd-snapshot.db"
printf key >"$work/ca.key"
`;
const ARCHIVE = `tar -C "$work" -cz etcd-snapshot.db ca.key; rm -rf "$work"`;

async function host(script: string, content = 'x'.repeat(20_000)) {
  const directory = await mkdtemp(join(tmpdir(), 'refit-snapshot-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const dataDirectory = join(directory, 'k0s');
  const snap = join(dataDirectory, 'etcd/member/snap');
  await mkdir(snap, { recursive: true });
  const hash = createHash('sha256').update(content).digest();
  await writeFile(join(snap, 'db'), Buffer.concat([Buffer.from(content), hash]));
  const stateDirectory = join(directory, 'state');
  await mkdir(stateDirectory, { mode: 0o700 });
  const binary = join(directory, 'k0s-bin');
  const text = `#!/bin/sh\nset -e\nDATA=${dataDirectory} RUN=${directory}\n${script}\n`;
  await writeFile(binary, text, { mode: 0o755 });
  const clock = new FakeClock();
  const stop = new AbortController();
  const take = async (rules: AgentSnapshot = {}, more: object = {}) =>
    await takeSnapshot(
      {
        binary,
        version: 'v1.37.0+k0s.0',
        dataDirectory,
        statusSocket: join(directory, 'status.sock'),
        stateDirectory,
        reserveBytes: 0,
        rules,
      },
      { clock, files: fsPromises, fileTrust, abort: stop.signal, ...more },
    );
  const kept = async () => await readdir(join(stateDirectory, 'snapshots'));
  return { directory, dataDirectory, stateDirectory, clock, stop, take, kept };
}

test('a snapshot is what k0s printed, whole, and only for its owner', async () => {
  const { take, kept, directory, stateDirectory } = await host(BACKUP + ARCHIVE);
  const { path = '', bytes, sha256 } = await take();
  expect(path).toMatch(/\/state\/snapshots\/k0s-before-v1\.37\.0\+k0s\.0-\d{8}T\d{6}Z\.tar\.gz$/);
  expect(await kept()).toHaveLength(1);
  const archive = await readFile(path);
  expect(archive).toHaveLength(bytes ?? -1);
  expect(createHash('sha256').update(archive).digest('hex')).toBe(sha256);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await stat(join(stateDirectory, 'snapshots'))).mode & 0o777).toBe(0o700);
  execFileSync('tar', ['-C', directory, '-xzf', path, 'etcd-snapshot.db']);
  expect((await stat(join(directory, 'etcd-snapshot.db'))).size).toBe(20_032);
});

test('with a certificate only its key opens the snapshot', async () => {
  const { take, directory } = await host(BACKUP + ARCHIVE);
  const key = join(directory, 'key.pem');
  const file = join(directory, 'cert.pem');
  const subject = ['-subj', '/CN=backups', '-days', '1'];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', file, ...subject],
    { stdio: 'ignore' },
  );
  const { path = '' } = await take({ certificate: await readFile(file, 'utf8') });
  expect(path).toMatch(/\.tar\.gz\.cms$/);
  const cms = ['cms', '-decrypt', '-binary', '-inform', 'DER', '-in', path, '-inkey', key];
  const names = execFileSync('sh', ['-c', '"$@" | tar -tz', 'sh', 'openssl', ...cms, file]);
  expect(String(names)).toBe('etcd-snapshot.db\nca.key\n');
});

const FAILURES: readonly (readonly [what: string, script: string, reason: RegExp])[] = [
  ['k0s fails', 'echo "Error: unable to detect cluster status" >&2; exit 1', /unable to detect/],
  [
    'k0s does not know the command',
    'echo "unknown command" >&2; exit 2',
    /code 2: unknown command/,
  ],
  ['k0s is killed', `${BACKUP} kill -9 $$`, /was ended by SIGKILL/],
  ['no snapshot of etcd', `${BACKUP} tar -C "$work" -cz ca.key`, /has no etcd-snapshot\.db/],
  [
    'half a snapshot',
    `${BACKUP} head -c 9000 "$work/etcd-snapshot.db" >"$work/h"; mv "$work/h" "$work/etcd-snapshot.db"; ${ARCHIVE}`,
    /etcd-snapshot\.db in its archive is not whole/,
  ],
  ['half an archive', `${BACKUP} tar -C "$work" -cz . | head -c 200`, /cannot be read/],
  ['no archive', 'echo hello', /cannot be read/],
  ['too big', 'head -c 100000000 /dev/zero', /bigger than \d+ bytes/],
];

test.each(FAILURES)(
  'nothing stays of a snapshot that failed, and the reason says why: %s',
  async (_, script, why) => {
    const { take, kept } = await host(script);
    await expect(take()).rejects.toThrow(why);
    expect(await kept()).toEqual([]);
  },
);

test('a certificate that openssl refuses leaves no snapshot', async () => {
  const { take, kept } = await host(BACKUP + ARCHIVE);
  await expect(take({ certificate: 'nonsense' })).rejects.toThrow(/openssl cms ended with code/);
  expect(await kept()).toEqual([]);
});

/** A script that writes the ids of its two processes to a file, and then never ends. */
const HANG = `${BACKUP} sleep 1000 & echo "$$ $!" >"$RUN/pids"; wait`;

test.each([
  ['too late', 'timeout' as const, /did not end within 1 min/],
  ['cancelled', 'abort' as const, /cancelled or replaced/],
])('k0s hangs, %s: it ends with its children', async (_, how, why) => {
  const { take, kept, clock, stop, directory } = await host(HANG);
  const taken = take({ timeoutMs: 60_000 });
  taken.catch(() => undefined);
  const pids = async () => (await readFile(join(directory, 'pids'), 'utf8')).trim().split(' ');
  await vi.waitFor(async () => expect(await pids()).toHaveLength(2), 10_000);
  if (how === 'abort') stop.abort();
  else await clock.advance(60_000);
  await expect(taken).rejects.toThrow(why);
  expect(await kept()).toEqual([]);
  const living = (await pids()).map(Number);
  await vi.waitFor(
    () => expect(living.filter((pid) => findProcess(pid) !== undefined)).toEqual([]),
    10_000,
  );
});

test('k0s is not started if the disk has no room for the snapshot', async () => {
  const { take, kept } = await host('touch "$RUN/started"');
  const statfs = async () => await Promise.resolve({ bavail: 30, bsize: 1_000, blocks: 50 });
  const more = { files: { ...fsPromises, statfs } };
  await expect(take({}, more)).rejects.toThrow(/has 30000 bytes free, the snapshot needs 40064/);
  expect(await kept()).toEqual([]);
});

test('a disk that is full in the middle leaves nothing', async () => {
  const { take, kept } = await host(BACKUP + ARCHIVE);
  const open = async (...args: Parameters<typeof fsPromises.open>) => {
    const file = await fsPromises.open(...args);
    file.writeFile = async () =>
      await Promise.reject(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }));
    return file;
  };
  await expect(take({}, { files: { ...fsPromises, open } })).rejects.toThrow(/ENOSPC/);
  expect(await kept()).toEqual([]);
});

test('what a run that was cut off has left goes, and so do the oldest snapshots', async () => {
  const { take, kept, stateDirectory } = await host(BACKUP + ARCHIVE);
  const folder = join(stateDirectory, 'snapshots');
  await mkdir(join(folder, 'working/k0s-backup123'), { recursive: true, mode: 0o700 });
  await writeFile(join(folder, 'working/k0s-backup123/ca.key'), 'key');
  for (const [place, name] of ['k0s-before-v1-a', 'k0s-before-v1-b', 'of-a-person'].entries()) {
    await writeFile(join(folder, name), '');
    await utimes(join(folder, name), place, place);
  }
  const { path = '' } = await take();
  const own = path.slice(folder.length + 1);
  expect((await kept()).toSorted()).toEqual(['k0s-before-v1-b', own, 'of-a-person']);
  await take({ keep: 1 });
  expect((await kept()).toSorted()).toEqual([own, 'of-a-person']);
});

test('a controller without etcd has nothing to save', async () => {
  const { take, dataDirectory } = await host('exit 1');
  await rm(join(dataDirectory, 'etcd'), { recursive: true });
  expect(await take({ require: true })).toEqual({
    at: expect.any(String) as string,
    none: `${dataDirectory} has no data of etcd`,
  });
});

test('a k0s that others can change is not run', async () => {
  const { take, directory } = await host('touch "$RUN/started"');
  await fsPromises.chmod(join(directory, 'k0s-bin'), 0o777);
  await expect(take()).rejects.toThrow(/others may write to/);
  expect(await readdir(directory)).not.toContain('started');
});

test('a reported snapshot counts only with its hash, and only in the directory of the snapshots', async () => {
  const { take, stateDirectory, directory } = await host(BACKUP + ARCHIVE);
  const taken = await take();
  const { path = '' } = taken;
  const kept = async (reported: object) =>
    await keptSnapshot(
      { ...taken, ...reported },
      { stateDirectory },
      { files: fsPromises, fileTrust },
    );
  expect(await kept({})).toEqual(taken);
  expect(await kept({ sha256: 'ab'.repeat(32) })).toBeUndefined();
  expect(
    await kept({ path: `${stateDirectory}/snapshots/../snapshots/${basename(path)}` }),
  ).toBeUndefined();
  await fsPromises.rename(path, join(directory, basename(path)));
  expect(await kept({})).toBeUndefined();
  expect(await kept({ path: join(directory, basename(path)) })).toBeUndefined();
  await fsPromises.symlink(join(directory, basename(path)), path);
  expect(await kept({})).toBeUndefined();
});
