/**
 * Keeps the record of the airgap bundles: which bundles the agent placed, and how long the bundles of the previous
 * version stay. The record is in the state directory, which only root can change.
 */
import { join } from 'node:path';
import type { KeptBundleFacts } from '../../signal/agent-presence.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import type { Logger } from '../../util/log.ts';
import { semaphore } from '../../util/waits.ts';
import { isSameVersion, mayBeSameVersion } from '../../versions/release-parts.ts';
import { type Files, syncPath } from '../state/durable-files.ts';
import { type RemovalReason, type StayCounter, stayCounter } from '../state/kept-stay.ts';
import { unless } from '../state/trusted-path.ts';
import {
  type BundleRecord,
  hasThirdVersion,
  isNewest,
  keptWithNext,
  loadBundles,
  type PlacedBundle,
  previousIn,
  saveBundles,
  withBundle,
} from './bundle-list.ts';
import { changeFinder } from './file-change.ts';
import { hashFile } from './hash-file.ts';

export interface KeptBundles {
  /** Returns the bundles that the agent placed, the newest last. */
  readonly placed: () => Promise<readonly PlacedBundle[]>;
  /** Records a bundle that is about to be placed. `keepMs` limits how long the bundles of the previous version stay. */
  readonly add: (bundle: PlacedBundle, keepMs: number | undefined) => Promise<void>;
  /**
   * Records to which version a bundle in the directory belongs, and removes the bundles of older versions. It does not
   * remove a file that the agent did not place.
   */
  readonly arrange: (name: string, version: string, keepMs: number | undefined) => Promise<void>;
  /**
   * Records that the upgrade to this version has succeeded. If a bundle belongs to the upgrade, the time limit of the
   * previous bundles starts now. The function removes no file, because the last report waits for it.
   */
  readonly settle: (version: string) => Promise<void>;
  /** Removes the previous bundles once their time limit has passed. */
  readonly tend: () => Promise<void>;
  /** Returns what is known about the bundles of the previous version; undefined if there are none. */
  readonly facts: () => Promise<KeptBundleFacts | undefined>;
  /**
   * Removes the previous bundles, unless a roll-back may need them, so that the directory has room for the download of
   * a version. Returns the version whose bundles were removed; undefined if that freed no space.
   */
  readonly sacrifice: (directory: string, version: string) => Promise<string | undefined>;
}

export interface KeptBundlesParts {
  /** The path of the record. */
  readonly list: string;
  readonly imagesDirectory: () => string;
  readonly files: Files;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /**
   * Returns the version that runs on the host; undefined if the service does not answer. Without this function, the
   * version of the last upgrade that succeeded counts as the running one.
   */
  readonly running?: () => Promise<string | undefined>;
}

/**
 * Returns functions that run one after the other, never at the same time. Create only one instance for each record: on
 * a controller, two agents share the instance.
 */
export function keptBundles(parts: KeptBundlesParts): KeptBundles {
  const { list, files } = parts;
  const alone = semaphore(1);
  const load = async () => await loadBundles(list, files);
  const save = async (next: BundleRecord): Promise<void> => await saveBundles(list, next, files);
  const desk: Desk = {
    ...parts,
    alone,
    load,
    save,
    // Guard bundle-removed. The agent removes only its own bytes.
    isUnchanged: async ({ name, sha256 }) =>
      (await hashFile(join(parts.imagesDirectory(), name), files)) === sha256,
  };
  const counter = stayCounter(parts.clock);
  return { ...listOf(desk, counter), ...lifeOf(desk, counter), ...factsOf(desk) };
}

/** The values that are shared by the functions that one call of `keptBundles` returns. */
interface Desk extends KeptBundlesParts {
  /** Runs the work after all earlier work of the instance. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  readonly load: () => Promise<BundleRecord>;
  readonly save: (next: BundleRecord) => Promise<void>;
  /** Returns true if the file has the bytes that the agent placed. */
  readonly isUnchanged: (bundle: PlacedBundle) => Promise<boolean>;
}

/** Returns the functions that record new bundles. */
function listOf(desk: Desk, counter: StayCounter): Pick<KeptBundles, 'placed' | 'add' | 'arrange'> {
  const { alone, load, save, isUnchanged, running } = desk;
  return {
    placed: async () => await alone(async () => (await load()).bundles),
    add: async (bundle, keepMs) =>
      await alone(async () => await save(withBundle(await load(), bundle, keepMs))),
    arrange: async (name, version, keepMs) =>
      await alone(async () => {
        const record = await load();
        const newest = record.bundles.find((bundle) => bundle.name === name);
        if (newest === undefined || !(await isUnchanged(newest))) return;
        const next = withBundle(record, { ...newest, version }, keepMs);
        // The bundles of two versions stay, whichever version runs. So the running version matters only if there are
        // bundles of a third version. It is read only then, because the service of a worker sends a request to the API
        // server before it answers.
        const runs = (hasThirdVersion(next) ? await running?.() : undefined) ?? next.runs;
        const kept = keptWithNext(next, runs);
        await removeUnchanged(
          next.bundles.filter((bundle) => !kept.includes(bundle)),
          desk,
        );
        // The record is saved after the files are removed. After power loss a removed file may exist again, and then
        // the record must still name it. The time limit of the previous bundles begins here if the upgrade to this
        // version succeeded before its bundle was placed.
        const isRunning = next.runs !== undefined && isSameVersion(next.runs, version);
        const begins = isRunning && kept.length > 1 && next.stay?.settled !== true;
        await save({
          ...next,
          bundles: kept,
          ...(begins && { stay: counter.begin(next.stay ?? {}) }),
        });
      }),
  };
}

/** Removes the files that nobody changed, and returns their bundles. A changed file does not belong to the agent any more. */
async function removeUnchanged(
  bundles: readonly PlacedBundle[],
  { imagesDirectory, files, isUnchanged }: Desk,
): Promise<readonly PlacedBundle[]> {
  const removed: PlacedBundle[] = [];
  for (const bundle of bundles) {
    if (!(await isUnchanged(bundle))) continue;
    await files.rm(join(imagesDirectory(), bundle.name), { force: true });
    removed.push(bundle);
  }
  await unless('ENOENT', syncPath(imagesDirectory(), files));
  return removed;
}

/** Returns the bundles whose files are missing. */
async function missingIn(
  bundles: readonly PlacedBundle[],
  { imagesDirectory, files }: Desk,
): Promise<readonly PlacedBundle[]> {
  const missing: PlacedBundle[] = [];
  for (const bundle of bundles)
    if (!(await isThere(join(imagesDirectory(), bundle.name), files))) missing.push(bundle);
  return missing;
}

async function isThere(path: string, files: Files): Promise<boolean> {
  return (await unless('ENOENT', files.lstat(path))) !== undefined;
}

/** Returns the functions that decide how long the previous bundles stay. */
function lifeOf(
  desk: Desk,
  counter: StayCounter,
): Pick<KeptBundles, 'settle' | 'tend' | 'sacrifice'> {
  const { files, imagesDirectory, alone, load, save } = desk;
  const expire = async (record: BundleRecord): Promise<void> => {
    const runs = await versionOf(record, desk);
    // The running version could not be read, so it is not known which bundles the node needs. The agent reads it again a minute later.
    if (runs === undefined) return;
    // If the disk with the images is not mounted, the agent does not know which files are missing.
    if ((await unless('ENOENT', files.stat(imagesDirectory()))) === undefined) return;
    // If somebody installed the previous version by hand, the previous bundles belong to the running version. They then
    // stay until the next bundle is placed. If a version cannot be parsed, the agent assumes that it is the running
    // version.
    const previous = previousIn(record);
    if (previous.some(({ version }) => mayBeSameVersion(version, runs)))
      return await save({ ...record, stay: {} });
    await give(record, previous, 'Expired', { settled: true }, desk);
  };
  return {
    settle: async (version) =>
      await alone(async () => {
        const record = settledWith(await load(), version);
        if (record === undefined) return;
        const begins = isNewest(record, version) && record.stay?.settled !== true;
        await save(begins ? { ...record, stay: counter.begin(record.stay ?? {}) } : record);
      }),
    tend: async () =>
      await alone(async () => {
        const record = await load();
        await counter.pass(record.stay ?? {}, {
          over: async () => await expire(record),
          save: async (stay) => await save({ ...record, stay }),
        });
      }),
    sacrifice: async (directory, version) =>
      await alone(async () => {
        const record = await load();
        if (record.stay?.settled !== true || previousIn(record).length === 0) return undefined;
        const [room, images] = await Promise.all([
          files.stat(directory),
          files.stat(imagesDirectory()),
        ]);
        if (room.dev !== images.dev) return undefined;
        const runs = await versionOf(record, desk);
        if (runs === undefined) return undefined;
        const needed = [version, runs];
        const idle = previousIn(record).filter(
          (bundle) => !needed.some((one) => mayBeSameVersion(bundle.version, one)),
        );
        return await give(record, idle, 'DiskFull', record.stay, desk);
      }),
  };
}

async function versionOf({ runs }: BundleRecord, { running }: Desk): Promise<string | undefined> {
  return running === undefined ? runs : await running();
}

/**
 * Removes the files of these bundles and records the reason. Returns the version of the bundles; undefined if no file
 * was removed. If the time limit has passed, a missing file counts as removed, because the agent may have crashed
 * before it recorded the removal.
 */
async function give(
  record: BundleRecord,
  bundles: readonly PlacedBundle[],
  reason: RemovalReason,
  stay: BundleRecord['stay'],
  desk: Desk,
): Promise<string | undefined> {
  const { log, save } = desk;
  const missing = reason === 'Expired' ? await missingIn(bundles, desk) : [];
  const removed = [...missing, ...(await removeUnchanged(bundles, desk))];
  const version = removed.at(-1)?.version;
  const gone = version === undefined ? record.gone : { version, gone: reason };
  const left = record.bundles.filter((bundle) => !removed.includes(bundle));
  if (version !== undefined) log.warn('removed the previous airgap bundle', { version, reason });
  // On a full disk the record cannot always be written. It does no harm if the record names a bundle whose file no
  // longer exists.
  await save({ ...record, bundles: left, ...defined({ gone, stay }) }).catch((error: unknown) =>
    log.warn('cannot record which airgap bundles are left', { reason: messageOf(error) }),
  );
  return version;
}

/**
 * Returns the record after the upgrade to this version; undefined if there are no bundles. If the node returned to an
 * older version whose bundle still exists, that bundle becomes the newest bundle.
 */
function settledWith(record: BundleRecord, version: string): BundleRecord | undefined {
  if (record.bundles.length === 0) return undefined;
  const own = record.bundles.filter((bundle) => isSameVersion(bundle.version, version));
  if (own.length === 0 || isNewest(record, version)) return { ...record, runs: version };
  const { gone: _gone, ...rest } = record;
  const others = record.bundles.filter((bundle) => !own.includes(bundle));
  return { ...rest, bundles: [...others, ...own], runs: version, stay: { settled: true } };
}

/** Returns the function that says what is known about the previous bundles. */
function factsOf({
  alone,
  load,
  save,
  files,
  imagesDirectory,
  log,
}: Desk): Pick<KeptBundles, 'facts'> {
  const changeOf = changeFinder(files);
  return {
    facts: async () =>
      await alone(async () => {
        const record = await load();
        const version = previousIn(record).at(-1)?.version;
        if (version === undefined) return record.gone;
        const stamps = new Map<string, string>();
        for (const bundle of record.bundles.filter((each) =>
          isSameVersion(each.version, version),
        )) {
          const change = await changeOf({ ...bundle, path: join(imagesDirectory(), bundle.name) });
          if (typeof change === 'string') return { version, gone: change };
          if (change.stamp !== bundle.stamp) stamps.set(bundle.name, change.stamp);
        }
        const bundles = record.bundles.map((each) => ({
          ...each,
          ...defined({ stamp: stamps.get(each.name) }),
        }));
        if (stamps.size > 0)
          await save({ ...record, bundles }).catch((error: unknown) =>
            log.warn('cannot record that the airgap bundles are unchanged', {
              reason: messageOf(error),
            }),
          );
        return defined({ version, until: record.stay?.until });
      }),
  };
}
