/** Saves etcd of a k0s controller before an upgrade: runs `k0s backup` of the installed k0s, and keeps its archive. */
import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { AgentSnapshot, EtcdSnapshot } from '../../signal/annotations.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { messageOf } from '../../util/errors.ts';
import { hashFile } from '../download/hash-file.ts';
import { type Files, syncPath } from '../state/durable-files.ts';
import { type FileTrust, unless } from '../state/trusted-path.ts';
import { archiveReader } from './etcd-entry.ts';
import { type PipedCommands, pipeCommands } from './piped-commands.ts';

export interface SnapshotRequest {
  /** The path of the k0s binary that is running. */
  readonly binary: string;
  /** The target version of the upgrade. It is a part of the name of the file. */
  readonly version: string;
  readonly dataDirectory: string;
  readonly statusSocket: string;
  readonly stateDirectory: string;
  /** The bytes that must stay free on the disk of the snapshot. */
  readonly reserveBytes: number;
  readonly rules: AgentSnapshot;
}

export interface SnapshotTools {
  readonly clock: Pick<Clock, 'now' | 'schedule'>;
  readonly files: Pick<Files, 'open' | 'statfs' | 'rm'>;
  readonly fileTrust: Pick<FileTrust, 'assertTrusted' | 'makePrivate'>;
  readonly abort: AbortSignal;
  /** The value of PATH. The agent searches for openssl in it. */
  readonly path?: string | undefined;
}

const DEFAULT_KEEP = 2;
const DEFAULT_TIMEOUT_MS = 10 * 60_000;
/** The free space is measured each time that this many bytes were written. */
const STEP_BYTES = 4 * 1024 * 1024;
/**
 * Extra bytes for the headers of many small files. Without the headers, the compressed archive is smaller than its
 * content.
 */
const HEADERS_BYTES = 64 * 1024 * 1024;
const PREFIX = 'k0s-before-';
/** The files and folders below the data directory of k0s that a backup of k0s contains. */
const SAVED = ['etcd/member/snap/db', 'pki', 'manifests', 'images', 'helmhome'];

/** Returns the directory of the finished snapshots, and the directory in which a snapshot is being taken. */
function placesIn(stateDirectory: string): { directory: string; working: string } {
  const directory = join(stateDirectory, 'snapshots');
  return { directory, working: join(directory, 'working') };
}

/** Removes the files of an interrupted snapshot. They may contain keys of the cluster. */
export async function discardSnapshot(
  stateDirectory: string,
  files: Pick<Files, 'rm'>,
): Promise<void> {
  await files.rm(placesIn(stateDirectory).working, { recursive: true, force: true });
}

/**
 * Takes a snapshot. Resolves with its file, or with `none` if this controller has no etcd of its own. If the snapshot
 * fails, it removes the files of the snapshot and rejects with the reason.
 */
export async function takeSnapshot(
  request: SnapshotRequest,
  tools: SnapshotTools,
): Promise<EtcdSnapshot> {
  const { dataDirectory, stateDirectory, binary, rules } = request;
  const { clock, files, fileTrust } = tools;
  const at = rfc3339(clock.now());
  const database = join(dataDirectory, 'etcd/member/snap/db');
  if ((await unless('ENOENT', lstat(database))) === undefined)
    return { at, none: `${dataDirectory} has no data of etcd` };
  const { directory, working } = placesIn(stateDirectory);
  // Guard snapshot-program. Root runs no binary that others can change.
  await fileTrust.assertTrusted(binary);
  // Guard snapshot-folder. A snapshot has all keys of the cluster.
  await fileTrust.makePrivate(directory);
  await discardSnapshot(stateDirectory, files);
  try {
    // Backed by snapshot-folder. The directory around it is private.
    await mkdir(working, { mode: 0o700 });
    const name = nameOf(request, at);
    const { bytes, sha256 } = await write(join(working, name), request, tools);
    const path = join(directory, name);
    await rename(join(working, name), path);
    await syncPath(directory);
    await prune(directory, name, rules.keep ?? DEFAULT_KEEP);
    return { at, path, bytes, sha256 };
  } finally {
    await discardSnapshot(stateDirectory, files);
  }
}

/**
 * Resolves with the reported snapshot if its file still exists and has the reported hash. Otherwise it resolves with
 * undefined, and the agent must take another snapshot. Anybody who may write the object may have written the report. So
 * only files in the directory of the snapshots are accepted.
 */
export async function keptSnapshot(
  reported: EtcdSnapshot | undefined,
  { stateDirectory }: Pick<SnapshotRequest, 'stateDirectory'>,
  { files, fileTrust }: Pick<SnapshotTools, 'files' | 'fileTrust'>,
): Promise<EtcdSnapshot | undefined> {
  const { path, sha256 } = reported ?? {};
  if (path === undefined || sha256 === undefined) return undefined;
  const { directory } = placesIn(stateDirectory);
  const name = basename(path);
  // Guard snapshot-place. A report names no other file of the host.
  if (path !== join(directory, name) || !name.startsWith(PREFIX)) return undefined;
  // Guard snapshot-found. Nobody else can replace the snapshot.
  await fileTrust.makePrivate(directory);
  const found = await unless('ENOENT', lstat(path));
  // Guard snapshot-same. A link is no snapshot.
  if (found?.isFile() !== true) return undefined;
  // Guard snapshot-hash. Only the file that was reported counts as the snapshot.
  return (await hashFile(path, files)) === sha256 ? reported : undefined;
}

/** The names of snapshots of one version sort by time. The version comes from a plan, so it may contain any character. */
function nameOf({ version, rules }: SnapshotRequest, at: string): string {
  const time = at.replaceAll(/[-:]|\.\d+/g, '');
  const wanted = version.replaceAll(/[^0-9A-Za-z.+-]/g, '_').slice(0, 64);
  return `${PREFIX}${wanted}-${time}.tar.gz${rules.certificate === undefined ? '' : '.cms'}`;
}

/** Writes the archive to `path`. Resolves with the size and the hash of the archive once it is synced to the disk. */
async function write(path: string, request: SnapshotRequest, tools: SnapshotTools) {
  const { clock, abort } = tools;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = request.rules;
  const room = await roomFor(request, tools);
  const commands = await start(path, request, tools);
  const archive = archiveReader();
  commands.copyTo(archive.input);
  const onAbort = (): void => commands.kill(new Error('the signal was cancelled or replaced'));
  abort.addEventListener('abort', onAbort, { once: true });
  const late = new Error(`it did not end within ${formatDuration(timeoutMs)}`);
  const cancel = clock.schedule(timeoutMs, () => commands.kill(late));
  if (abort.aborted) onAbort();
  try {
    const written = await store(path, commands, room, tools);
    await commands.ended;
    const problem = await archive.problem;
    if (problem !== undefined) throw new Error(problem);
    return written;
  } catch (error) {
    commands.kill(error as Error);
    // The programs are awaited first, because the exit code of a program explains a failure better than the end of its output.
    await commands.ended;
    throw error;
  } finally {
    cancel();
    abort.removeEventListener('abort', onAbort);
    archive.input.destroy();
  }
}

/** k0s writes temporary files with the keys of the cluster. So its temporary directory must be readable only by root. */
async function start(
  path: string,
  { binary, dataDirectory, statusSocket, rules }: SnapshotRequest,
  { path: PATH = process.env['PATH'] }: SnapshotTools,
): Promise<PipedCommands> {
  const working = dirname(path);
  const places = ['--data-dir', dataDirectory, '--status-socket', statusSocket];
  const backup = { program: binary, args: ['backup', '--save-path', '-', ...places] };
  const env = { ...(PATH !== undefined && { PATH }), TMPDIR: working, LC_ALL: 'C' };
  if (rules.certificate === undefined) return pipeCommands(backup, undefined, env);
  const certificate = join(working, 'certificate.pem');
  await writeFile(certificate, `${rules.certificate}\n`, { mode: 0o600 });
  const cms = ['cms', '-encrypt', '-stream', '-binary', '-aes-256-cbc', '-outform', 'DER'];
  return pipeCommands(backup, { program: 'openssl', args: [...cms, certificate] }, env);
}

interface Room {
  readonly mostBytes: number;
  /** Rejects if a write of this many more bytes would leave less free space than the reserve. */
  readonly require: (bytes: number) => Promise<void>;
}

/**
 * Rejects if the disk has no room for the snapshot together with the temporary copy of etcd that k0s makes. Otherwise
 * resolves with the limits for the snapshot.
 */
async function roomFor(
  { dataDirectory, stateDirectory, reserveBytes }: SnapshotRequest,
  { files }: SnapshotTools,
): Promise<Room> {
  const { directory } = placesIn(stateDirectory);
  const sizes = await Promise.all(
    SAVED.map(async (name) => await sizeOf(join(dataDirectory, name))),
  );
  const whole = sizes.reduce((sum, each) => sum + each, 0);
  const require: Room['require'] = async (bytes) => {
    const { bavail, bsize, blocks } = await files.statfs(directory);
    const free = bavail * bsize;
    // A file system that does not report its size counts as having enough room.
    if (blocks === 0 || free >= bytes + reserveBytes) return;
    throw new Error(
      `${directory} has ${free} bytes free, the snapshot needs ${bytes} and the reserve ${reserveBytes}`,
    );
  };
  await require(whole + (sizes[0] ?? 0));
  return { mostBytes: 2 * whole + HEADERS_BYTES, require };
}

async function sizeOf(path: string): Promise<number> {
  const found = await unless('ENOENT', lstat(path));
  if (found?.isDirectory() !== true) return found?.size ?? 0;
  const names = await unless('ENOENT', readdir(path));
  const sizes = (names ?? []).map(async (name) => await sizeOf(join(path, name)));
  return (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0);
}

async function store(
  path: string,
  { output }: PipedCommands,
  { mostBytes, require }: Room,
  { files }: SnapshotTools,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  let unchecked = 0;
  await using file = await files.open(path, 'wx', 0o600);
  for await (const chunk of output as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    unchecked += chunk.length;
    if (bytes > mostBytes) throw new Error(`it is bigger than ${mostBytes} bytes`);
    if (unchecked >= STEP_BYTES) {
      await require(unchecked);
      unchecked = 0;
    }
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  await file.sync();
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Keeps the `keep` newest snapshots and removes all others. Never removes `newest`, even if an older snapshot has a
 * later time because the clock of the host was wrong.
 */
async function prune(directory: string, newest: string, keep: number): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(PREFIX));
  const times = await Promise.all(
    names
      .filter((name) => name !== newest)
      .map(async (name) => ({ name, at: (await lstat(join(directory, name))).mtimeMs })),
  );
  const old = times.toSorted((a, b) => b.at - a.at).slice(Math.max(0, keep - 1));
  for (const { name } of old) await rm(join(directory, name), { force: true });
}

/** Returns the record of a failed snapshot. The record is for people. */
export function failedSnapshot(error: unknown, now: number): EtcdSnapshot {
  return { at: rfc3339(now), failed: messageOf(error) };
}
