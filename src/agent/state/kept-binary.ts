/**
 * Keeps the binary to which a node can be rolled back. It records which binary this is, whether it is unchanged, and
 * how long it stays. The record is in the state directory, which only root can change.
 */
import { dirname } from 'node:path';
import type { KeptFacts } from '../../signal/agent-presence.ts';
import { aText, type Members, readMembers } from '../../signal/members.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { defined, isRecord, parseJson } from '../../util/json.ts';
import type { Logger } from '../../util/log.ts';
import { semaphore } from '../../util/waits.ts';
import { changeFinder } from '../download/file-change.ts';
import { hashFile, stampIn } from '../download/hash-file.ts';
import { type Files, replaceDurably, syncPath, writeDurably } from './durable-files.ts';
import { aRemovalReason, type RemovalReason, STAY, stayCounter } from './kept-stay.ts';

const RECORD = {
  ...STAY,
  /** The stamp that the file had when its hash last matched the record. It is absent in records of older agents. */
  stamp: aText,
  /** Says why the agent has removed the binary. */
  gone: aRemovalReason,
};

interface KeptRecord extends Members<typeof RECORD> {
  readonly path: string;
  readonly version: string;
  readonly sha256: string;
}

export interface KeptBinary {
  /**
   * Returns the kept binary, or the reason why there is no kept binary any more; undefined if nothing is known. It
   * hashes the file only if the stamp of the file has changed.
   */
  readonly facts: () => Promise<KeptFacts | undefined>;
  /**
   * Calls `keep`, which replaces the file at `path`, and records the new file. The time `keepMs` starts at the call of
   * `settle`.
   */
  readonly replace: (
    next: { readonly path: string; readonly version: string; readonly keepMs: number | undefined },
    keep: () => Promise<void>,
  ) => Promise<void>;
  /**
   * Records that the upgrade has succeeded. The time limit of the binary starts now. The function removes no file,
   * because the last report waits for it.
   */
  readonly settle: () => Promise<void>;
  /** Removes the binary once its time limit has passed. */
  readonly tend: () => Promise<void>;
  /** Rejects if the file at `path` is not the recorded file. Without a record every file is accepted. */
  readonly verify: (path: string) => Promise<void>;
  /** Stages the kept binary if it has this hash. Resolves with true if the kept binary was staged. */
  readonly take: (path: string, sha256: string, staged: string) => Promise<boolean>;
  /**
   * Removes the binary to free disk space, unless a roll-back needs it. Returns true if that freed the space of the
   * binary.
   */
  readonly sacrifice: (binary: string, path: string) => Promise<boolean>;
}

export interface KeptParts {
  /** The path of the record. */
  readonly record: string;
  readonly files: Files;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}

/** Returns functions that run one after the other, never at the same time. Create only one instance for each record. */
export function keptBinary(parts: KeptParts): KeptBinary {
  const { files, log } = parts;
  const alone = semaphore(1);
  const load = async () => await loadRecord(parts.record, files);
  const save = async (next: KeptRecord): Promise<void> =>
    await writeDurably(parts.record, `${JSON.stringify(next)}\n`, files);
  const remove = async (known: KeptRecord, gone: RemovalReason): Promise<void> => {
    const { leftMs: _left, until: _until, ...rest } = known;
    await files.rm(known.path, { force: true });
    await syncPath(dirname(known.path), files);
    log.warn('removed the kept binary', { version: known.version, reason: gone });
    // On a full disk the record cannot always be written. It does no harm if the record names a file that no longer
    // exists, because `facts` then reports that the file was removed.
    await save({ ...rest, gone }).catch((error: unknown) =>
      log.warn('cannot record that the kept binary was removed', { reason: messageOf(error) }),
    );
  };
  const desk: Desk = { ...parts, alone, load, save, remove };
  return { ...lifeOf(desk), ...useOf(desk) };
}

/** The values that are shared by the functions that one call of `keptBinary` returns. */
interface Desk extends KeptParts {
  /** Runs the work after all earlier work of the instance. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  readonly load: () => Promise<KeptRecord | undefined>;
  readonly save: (next: KeptRecord) => Promise<void>;
  readonly remove: (known: KeptRecord, gone: RemovalReason) => Promise<void>;
}

/** Returns the functions that decide how long the binary stays. */
function lifeOf(desk: Desk): Pick<KeptBinary, 'replace' | 'settle' | 'tend'> {
  const { record, files, clock, log, alone, load, save, remove } = desk;
  const counter = stayCounter(clock);
  return {
    replace: async ({ path, version, keepMs }, keep) =>
      await alone(async () => {
        // The record of the earlier file is removed first, because with it the new file would fail the check. Without a
        // record, a roll-back is possible, but the file is not verified.
        await files.rm(record, { force: true });
        await keep();
        const sha256 = await hashFile(path, files);
        if (sha256 === undefined) return;
        const stamp = stampIn(await files.lstat(path, { bigint: true }));
        const more = defined({ leftMs: keepMs, stamp });
        await save({ path, version, sha256, ...more }).catch((error: unknown) =>
          log.warn('cannot record the kept binary', { reason: messageOf(error) }),
        );
      }),
    settle: async () =>
      await alone(async () => {
        const known = await load();
        if (known === undefined || known.settled === true || known.gone !== undefined) return;
        await save({ ...known, ...counter.begin(known) });
      }),
    tend: async () =>
      await alone(async () => {
        const known = await load();
        if (known === undefined || known.gone !== undefined) return;
        await counter.pass(known, {
          over: async () => await remove(known, 'Expired'),
          save: async (next) => await save({ ...known, ...next }),
        });
      }),
  };
}

/** Returns the functions that read, use or remove the binary. */
function useOf(desk: Desk): Pick<KeptBinary, 'facts' | 'verify' | 'take' | 'sacrifice'> {
  const { files, log, alone, load, remove } = desk;
  const changeOf = changeRecorder(desk);
  return {
    facts: async () =>
      await alone(async () => {
        const known = await load();
        if (known === undefined) return undefined;
        const { version, sha256, until, gone } = known;
        if (gone !== undefined) return { version, sha256, gone };
        const byHand = await changeOf(known);
        // An older controller does not know these reasons, so the version is left out. If the version is missing, that
        // controller concludes that the node cannot be rolled back.
        if (byHand !== undefined) return { gone: byHand };
        return { version, sha256, ...(until !== undefined && { until }) };
      }),
    verify: async (path) =>
      await alone(async () => {
        const known = await load();
        if (known === undefined || known.path !== path || known.gone !== undefined) return;
        const found = await hashFile(path, files);
        // Guard kept-verified. A roll-back installs only the file that was kept.
        if (found !== undefined && found !== known.sha256)
          throw new Error(
            `${path} is not the binary that was kept (sha256 ${found}, was ${known.sha256}): put the binary of ${known.version} there`,
          );
      }),
    take: async (path, sha256, staged) =>
      await alone(async () => {
        const known = await load();
        // Backed by kept-taken. The file itself is hashed.
        const isWanted = known?.path === path && known.sha256 === sha256;
        if (!isWanted || known.gone !== undefined) return false;
        const found = await files.lstat(path).catch(() => undefined);
        // Guard kept-taken. The kept file is staged only if it still has the wanted hash.
        if (found?.isFile() !== true || (await hashFile(path, files)) !== sha256) return false;
        await replaceDurably(path, staged, files);
        log.info('took the kept binary instead of a download', { version: known.version });
        return true;
      }),
    sacrifice: async (binary, path) =>
      await alone(async () => {
        const known = await load();
        // Before the upgrade has succeeded, a roll-back needs the binary. A file without a record may belong to another
        // agent.
        if (known?.path !== path || known.settled !== true || known.gone !== undefined)
          return false;
        const installed = await files.lstat(binary).catch(() => undefined);
        const kept = await files.lstat(path).catch(() => undefined);
        // Guard kept-needed. The way back stays while the installed binary does not work.
        const isWorking = installed?.isFile() === true && installed.size > 0;
        // If the kept file is only a second hard link to the installed binary, its removal frees no space.
        if (!isWorking || kept?.isFile() !== true || kept.ino === installed.ino) return false;
        await remove(known, 'DiskFull');
        return true;
      }),
  };
}

/**
 * Returns a function that reports whether somebody else changed or removed the kept file. If the file is unchanged, the
 * function records its stamp.
 */
function changeRecorder({ files, log, save }: Desk) {
  const changeOf = changeFinder(files);
  return async (known: KeptRecord): Promise<'Changed' | 'Removed' | undefined> => {
    const change = await changeOf(known);
    if (typeof change === 'string') return change;
    if (change.stamp === known.stamp) return undefined;
    await save({ ...known, ...change }).catch((error: unknown) =>
      log.warn('cannot record that the kept binary is unchanged', { reason: messageOf(error) }),
    );
    return undefined;
  };
}

/** Returns undefined if there is no record, or if it is damaged. */
async function loadRecord(path: string, files: Files): Promise<KeptRecord | undefined> {
  const value = parseJson(await files.readFile(path, 'utf8').catch(() => undefined));
  if (!isRecord(value)) return undefined;
  const { path: at, version, sha256 } = value;
  if (typeof at !== 'string' || typeof version !== 'string' || typeof sha256 !== 'string')
    return undefined;
  return { path: at, version, sha256, ...readMembers(value, RECORD) };
}
