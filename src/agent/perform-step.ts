/** Carries out steps on the host. Each step may be interrupted at any point and is then repeated. */
import { dirname, join } from 'node:path';
import { writeOwner } from '../drain/cordon-marks.ts';
import type { EtcdSnapshot } from '../signal/annotations.ts';
import { backoffDelay, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import { type FetchRequest, type FetchTools, limitsFor } from './download/fetch.ts';
import { hashFile, stampOf } from './download/hash-file.ts';
import type { KeptBundles } from './download/kept-bundles.ts';
import { wantedHash } from './download/partial-file.ts';
import { discardBundle, placeBundle } from './download/place-bundle.ts';
import { type DownloadRequest, discardDownload, download } from './download/stage-binary.ts';
import { type ActiveJournal, isStaged, type StagedJournal, type UpdateJournal } from './journal.ts';
import { DrainLateError, type Maintenance } from './maintenance/node-maintenance.ts';
import { endProcess, identityOf } from './service/processes.ts';
import type { ServicePlaces } from './service/service-place.ts';
import type { ServiceRestarter } from './service/service-restarter.ts';
import {
  discardSnapshot,
  failedSnapshot,
  keptSnapshot,
  takeSnapshot,
} from './snapshot/take-snapshot.ts';
import { type Files, replaceDurably, syncPath } from './state/durable-files.ts';
import { copyAttributes } from './state/file-attributes.ts';
import type { KeptBinary } from './state/kept-binary.ts';
import { pathsIn, upgradePathsOf } from './state/state-directory.ts';
import type { FileTrust } from './state/trusted-path.ts';
import type { Removals, Step, StepOutcome } from './steps/step.ts';
import { type HashOrigin, runTrial } from './trial/trial-run.ts';

export interface EffectTools
  extends Omit<FetchTools, 'abort'>,
    Pick<FetchRequest, 'userAgent' | 'limits'> {
  readonly stateDirectory: string;
  readonly imagesDirectory: string;
  /** If true, the binary of a forced update must have the version that the signal names. */
  readonly checkForced?: boolean;
  /** The paths on this host of the service's data and of its status socket. */
  readonly places: Pick<ServicePlaces, 'current'>;
  readonly maintenance: Maintenance;
  readonly restarter: Pick<ServiceRestarter, 'restart'>;
  readonly fileTrust: FileTrust;
  /** Copies the attributes of a file. Tests replace it. */
  readonly copyAttributes?: typeof copyAttributes;
  /**
   * Maps the paths of staged files to the stamp and the hash that they had at their trial run in this process. If the
   * map is absent, the files are hashed again.
   */
  readonly tried?: Map<string, string>;
  /** Keeps the previous binary. If it is absent, the previous binary is neither recorded nor verified. */
  readonly kept?: KeptBinary;
  /** Keeps the airgap bundles. If it is absent, the previous bundles stay until the next bundle. */
  readonly keptBundles?: KeptBundles;
}

const TRIAL_TIMEOUT_MS = 10_000;
/**
 * The attempts to roll back take about ten seconds in total. The limit is short, because the restart needs the rest of
 * the time that a roll-back may take.
 */
const ROLL_BACK_RETRY = { times: 8, base: 100, cap: 2_000 };

/** Carries out the step. Rejects only when `abort` aborts. Every other failure is returned as the outcome of the step. */
export async function perform(
  step: Step,
  journal: ActiveJournal,
  tools: EffectTools,
  abort: AbortSignal,
): Promise<StepOutcome> {
  let lost: Removals = {};
  const onRemoved = (more: Removals): void => {
    lost = { ...lost, ...more };
  };
  try {
    const limits = limitsFor(tools.limits, journal.work.policy);
    const running = { ...tools, limits, abort, onRemoved };
    if (step.kind === 'snapshot-etcd' && !isStaged(journal))
      return { ok: true, snapshot: await snapshotFor(journal, step.reported, running) };
    await (isStaged(journal)
      ? bundleEffectOf(step, journal, running)
      : updateEffectOf(step, journal, running));
    return { ok: true, ...lost };
  } catch (error) {
    abort.throwIfAborted();
    const late = error instanceof DrainLateError && ({ late: 'drain' } as const);
    return { ok: false, reason: messageOf(error), error, ...late, ...lost };
  }
}

type RunningTools = EffectTools &
  FetchTools & {
    /**
     * The agent calls this function after it has removed files to make room for a download. The host kept these files
     * for a roll-back.
     */
    readonly onRemoved: (removals: Removals) => void;
  };

/** Takes the snapshot of etcd. Rejects if the snapshot fails and the policy requires one. */
async function snapshotFor(
  { work: { binary, signal, policy } }: UpdateJournal,
  reported: EtcdSnapshot | undefined,
  tools: RunningTools,
): Promise<EtcdSnapshot> {
  const { stateDirectory, limits, clock, log, abort } = tools;
  const { dataDirectory, statusSocket } = tools.places.current;
  const rules = policy?.etcdSnapshot ?? {};
  const { version } = signal.command;
  const places = { binary, dataDirectory, statusSocket, stateDirectory };
  const request = { ...places, version, reserveBytes: limits.reserveBytes, rules };
  try {
    const kept = await keptSnapshot(reported, request, tools);
    return kept ?? (await takeSnapshot(request, tools));
  } catch (error) {
    abort.throwIfAborted();
    if (rules.require === true)
      throw new Error('no snapshot of etcd was taken, so nothing was changed', { cause: error });
    log.warn('could not take the snapshot of etcd; the work goes on without it', {
      reason: messageOf(error),
    });
    return failedSnapshot(error, clock.now());
  }
}

/** Maps each step to its effect on the host. Steps that are missing here change only the journal or the object. */
type Effects = {
  readonly [K in Step['kind']]?: (step: Extract<Step, { kind: K }>) => Promise<void> | void;
};

async function updateEffectOf(
  step: Step,
  { work, process, phase }: UpdateJournal,
  tools: RunningTools,
) {
  const { planId, created, command } = work.signal;
  const { url, sha256, version, forceupdate } = command;
  const { staging, staged, part } = upgradePathsOf(work.binary);
  const paths = { part, record: pathsIn(tools.stateDirectory).record };
  const { userAgent, limits, maintenance, restarter, files, fileTrust, abort } = tools;
  const drain = work.policy?.drain ?? {};
  const discard = async (): Promise<void> => {
    await discardSnapshot(tools.stateDirectory, files);
    await discardDownload({ staged, paths }, files);
    await fileTrust.removeEmpty(staging);
  };
  // Guard staging-folder. Nobody else can change what is staged.
  const prepare = async (): Promise<void> => await fileTrust.makePrivate(staging);
  const effects: Effects = {
    download: async () =>
      await download(
        { url, sha256, staged, paths, userAgent, limits, prepare, ...spareFor(work, tools) },
        tools,
      ),
    'trial-run': async () => {
      const wanted = await wantedHash(sha256, paths.record, files);
      const anyVersion = forceupdate === true && tools.checkForced !== true;
      const trial = {
        binary: staged,
        sha256: wanted,
        timeoutMs: TRIAL_TIMEOUT_MS,
        cannot: (problem: string) => tools.log.warn(problem),
        ...(!anyVersion && { version }),
        ...(sha256 !== undefined && { origin: await originOf(sha256, tools) }),
      };
      if (wanted !== undefined) tools.tried?.set(staged, `${await stampOf(staged)} ${wanted}`);
      await runTrial(trial);
    },
    'cordon-and-drain': async () =>
      await maintenance.cordonAndDrain(
        writeOwner({ plan: planId, attempt: created }),
        drain,
        abort,
      ),
    ...replacementsOf(work, paths.record, tools),
    restart: async (order) => {
      // Guard restart-path. Root starts no binary that others can change.
      await fileTrust.assertReplaceable(work.binary);
      await restarter.restart(order.process ?? process ?? work.original, work.binary);
    },
    soak: async ({ overtakes }) => {
      if (overtakes === true) await overtakeK0s(work.binary, files);
    },
    kill: (order) => endProcess(order.process, 'SIGKILL'),
    // After a failed upgrade only Refit's own cordon is removed, whatever the policy says.
    uncordon: async () =>
      await maintenance.uncordon(phase === 'proven' ? (drain.uncordon ?? 'ours') : 'ours', abort),
    'clean-up': discard,
    'stand-aside': discard,
  };
  await effects[step.kind]?.(step as never);
}

/** Says of a sha256 from the plan whether the kept binary has it, because the agent then stages that binary and downloads nothing. */
async function originOf(sha256: string, { kept }: RunningTools): Promise<HashOrigin> {
  const facts = await kept?.facts();
  const isKept = facts?.gone === undefined && facts?.sha256 === sha256.toLowerCase();
  return isKept ? defined({ keptVersion: facts.version }) : {};
}

/** Returns functions with which a download can use the kept binary, or remove kept files to free disk space. */
function spareFor(
  { binary, signal: { created, command } }: UpdateJournal['work'],
  tools: RunningTools,
): Pick<DownloadRequest, 'takeKept' | 'makeRoom'> {
  const { kept, fileTrust, onRemoved } = tools;
  const { previous } = upgradePathsOf(binary);
  if (kept === undefined) return {};
  return {
    takeKept: async (sha256, staged) => {
      // Guard take-path. Nobody else can change the kept binary.
      await fileTrust.assertReplaceable(previous);
      return await kept.take(previous, sha256, staged);
    },
    // The files that are kept for a roll-back are removed only for the download of a signal. A download ahead of the
    // upgrade has no signal yet and is not urgent.
    ...(created !== '' && {
      makeRoom: async () => {
        // The previous bundle is removed before the previous binary, because the node usually has the images of the bundle in its container
        // runtime as well.
        if (await sacrificeBundle(dirname(binary), command.version, tools)) return true;
        // The version is read from the record before the binary is removed, because on a full disk the record may not be writable
        // afterwards.
        const { version } = (await kept.facts()) ?? {};
        const isRemoved = await kept.sacrifice(binary, previous);
        if (isRemoved && version !== undefined) onRemoved({ removed: version });
        return isRemoved;
      },
    }),
  };
}

/** Removes the previous airgap bundles to free space for the directory. Returns true if that freed space. */
async function sacrificeBundle(
  directory: string,
  version: string,
  { keptBundles, onRemoved }: RunningTools,
): Promise<boolean> {
  const removedBundle = await keptBundles?.sacrifice(directory, version);
  if (removedBundle === undefined) return false;
  onRemoved({ removedBundle });
  return true;
}

/**
 * Returns the steps that replace one file by another. The new file gets the owner, mode and extended attributes of the
 * old one.
 */
function replacementsOf(
  work: UpdateJournal['work'],
  record: string,
  tools: RunningTools,
): Pick<Effects, 'keep-previous' | 'swap' | 'roll-back'> {
  const { sha256, forceupdate } = work.signal.command;
  const { staged, previous } = upgradePathsOf(work.binary);
  const { files, fileTrust, kept, copyAttributes: copy = copyAttributes } = tools;
  const cannot = (problem: string): void => tools.log.warn(problem);
  const withAttributesOf = async (from: string, to: string, isSameContent = false) => {
    await copy(from, to, { cannot, isSameContent });
    await syncPath(to, files);
  };
  return {
    'keep-previous': async () => {
      // Guard keep-path. Nobody else can change what is kept for a roll-back.
      await fileTrust.assertReplaceable(work.binary);
      const keep = async (): Promise<void> =>
        await replaceDurably(work.binary, previous, files, async (path, isCopy) => {
          if (isCopy) await withAttributesOf(work.binary, path, true);
          // Guard keep-other. The new binary does not become its own way back.
          if (!forceupdate && (await isSameContent(path, staged, files)))
            throw new Error(
              `${work.binary} is the wanted version already: another agent put it in place`,
            );
        });
      const next = { path: previous, version: work.from, keepMs: work.policy?.keepPreviousMs };
      await (kept ? kept.replace(next, keep) : keep());
    },
    swap: async ({ overtakes }) => {
      // Guard swap-path. Nobody else can replace the binary after the swap.
      await fileTrust.assertReplaceable(work.binary);
      if (overtakes === true) {
        await overtakeK0s(work.binary, files);
        // Backed by same-bytes. The comparison itself is the guard.
        if (forceupdate !== true && (await isSameContent(work.binary, staged, files))) return;
      }
      const wanted = await wantedHash(sha256, record, files);
      const then = tools.tried?.get(staged);
      // Guard swap-stamp. Only a file that has not changed since its trial run is not hashed again.
      const isTried = then !== undefined && then === `${await stampOf(staged)} ${wanted}`;
      await replaceDurably(staged, work.binary, files, async (path) => {
        await withAttributesOf(work.binary, path);
        // If the file system has no hard links, the new file is a copy, so its hash is checked, too.
        // Guard swap-copy. A copy is another file than the one of the trial run.
        if (!isTried || identityOf(path) !== identityOf(staged))
          await checkHash(path, wanted, files);
      });
    },
    'roll-back': async () => {
      // Guard back-path. Nobody else can change the way back.
      await fileTrust.assertReplaceable(previous);
      // Guard back-hash. A roll-back installs only the file that was kept.
      await kept?.verify(previous);
      // A missing attribute must not stop the roll-back, because a node without a working binary is worse.
      const copyAttributesIfPossible = async (path: string): Promise<void> =>
        await withAttributesOf(previous, path, true).catch((error) => cannot(messageOf(error)));
      const putBack = async (): Promise<void> => {
        try {
          await replaceDurably(previous, work.binary, files, async (path, isCopy) => {
            if (isCopy) await copyAttributesIfPossible(path);
          });
        } catch (error) {
          // A problem that prevented the swap, such as a mount on the file, also prevents the roll-back. If the file
          // was never replaced, there is nothing to undo.
          // Backed by same-bytes. The comparison itself is the guard.
          if (!(await isSameContent(previous, work.binary, files))) throw error;
          await syncPath(dirname(work.binary), files);
        }
      };
      await retryRollBack(putBack, tools);
    },
  };
}

/**
 * Removes the files from which k0s's own agent would replace the binary: the file that it downloaded, and the second
 * name of this file that it renames. If the downloaded file is gone, that agent assumes that the new binary is in place,
 * and replaces nothing. So after this call only this agent replaces the binary. If that agent was faster, its binary is
 * in place.
 */
async function overtakeK0s(binary: string, files: Files): Promise<void> {
  const directory = dirname(binary);
  for (const name of ['k0s.tmp', 'k0s.new']) await files.rm(join(directory, name), { force: true });
}

async function isSameContent(path: string, other: string, files: Files): Promise<boolean> {
  const sizeOf = async (each: string): Promise<number | undefined> =>
    (await files.stat(each).catch(() => undefined))?.size;
  const size = await sizeOf(path);
  if (size === undefined || size !== (await sizeOf(other))) return false;
  // Guard same-bytes. Two files of one size may differ.
  return (await hashFile(path, files)) === (await hashFile(other, files));
}

/** Rejects unless the file has the wanted hash, so that the rename puts exactly the verified bytes in place. */
async function checkHash(path: string, wanted: string | undefined, files: Files): Promise<void> {
  const found = await hashFile(path, files);
  // Guard swap-hash. The swap puts exactly the verified bytes in place.
  if (wanted === undefined || found !== wanted)
    throw new Error(
      `the download changed on the disk (sha256 ${found}, was ${wanted}): check the disk, then retry`,
    );
}

/** Repeats a failed roll-back, because nothing else can restore the old version. */
async function retryRollBack(
  work: () => Promise<void>,
  { clock, random, log, abort }: RunningTools,
): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (failures === ROLL_BACK_RETRY.times) throw error;
      const pauseMs = backoffDelay(failures, { ...ROLL_BACK_RETRY, random });
      log.warn('the roll-back is retried', { reason: messageOf(error), pauseMs });
      await sleep(clock, pauseMs, abort);
    }
  }
}

async function bundleEffectOf(
  step: Step,
  { work }: StagedJournal,
  tools: RunningTools,
): Promise<void> {
  const { url, sha256, version } = work.signal.command;
  const { imagesDirectory, userAgent, limits, files, fileTrust } = tools;
  const { bundleRecord: record, bundles: list } = pathsIn(tools.stateDirectory);
  if (step.kind === 'fetch-bundle') {
    const makeRoom = async (): Promise<boolean> =>
      await sacrificeBundle(dirname(imagesDirectory), version, tools);
    const keepMs = work.policy?.keepPreviousMs;
    const { keptBundles } = tools;
    const kept = { keepMs, makeRoom, ...(keptBundles && { keptBundles }) };
    const place = { imagesDirectory, record, list, fileTrust, ...kept };
    await placeBundle({ url, sha256, version, ...place, userAgent, limits }, tools);
  }
  if (step.kind === 'clean-up') await discardBundle({ imagesDirectory, record }, files);
}
