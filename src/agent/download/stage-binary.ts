/**
 * Downloads a binary to its staging path, verifies it and makes it executable. A binary that is there already is not
 * downloaded again.
 */
import { dirname } from 'node:path';
import { isKeptFileUrl } from '../../signal/kept-file.ts';
import { type Files, syncPath } from '../state/durable-files.ts';
import { unless } from '../state/trusted-path.ts';
import { whenThereIsRoom } from './disk-room.ts';
import { type DownloadLimits, type FetchRequest, type FetchTools, fetchVerified } from './fetch.ts';
import { hashFile } from './hash-file.ts';
import { openPartial } from './partial-file.ts';

export interface DownloadRequest extends FetchRequest {
  /** The path of the verified payload. It is in the same directory as `paths.part`. */
  readonly staged: string;
  readonly prepare: () => Promise<void>;
  /** Stages the kept binary if it has this hash. Resolves with true if the kept binary was staged. */
  readonly takeKept?: (sha256: string, staged: string) => Promise<boolean>;
  /** Removes files that the host does not need. Resolves with true if that freed disk space. */
  readonly makeRoom?: () => Promise<boolean>;
}

const EXECUTABLE = 0o755;

/** Resolves once the binary is staged and synced. Rejects with a reason for people, or with the reason of `abort`. */
export async function download(request: DownloadRequest, tools: FetchTools): Promise<void> {
  const discard = async (): Promise<void> => await discardDownload(request, tools.files);
  const stage = async (limits: DownloadLimits): Promise<void> =>
    await stageOnce({ ...tools, ...request, limits });
  await whenThereIsRoom(stage, discard, request.limits, tools, request.makeRoom);
}

async function stageOnce(asked: DownloadRequest & FetchTools): Promise<void> {
  const { url, sha256, staged, paths, files } = asked;
  await asked.prepare();
  await using part = await openPartial({ url, sha256: sha256?.toLowerCase() }, paths, files);
  if (part.wanted !== undefined && (await isStaged(staged, part.wanted, files))) return;
  if (part.wanted !== undefined && (await asked.takeKept?.(part.wanted, staged)) === true) return;
  if (isKeptFileUrl(url)) throw new Error(notKept(sha256));
  // Guard part-whole. A part of an earlier process is complete only with the wanted hash.
  if (part.wanted === undefined || part.sha256 !== part.wanted)
    await fetchVerified({
      ...asked,
      part,
      inspect: async () => await Promise.resolve({ isHere: false }),
    });
  await part.seal(EXECUTABLE);
  await files.rename(paths.part, staged);
  await syncPath(dirname(staged), files);
}

/** Says why the host cannot take the file that the Plan expects it to keep. */
export function notKept(sha256: string | undefined): string {
  return `the Plan expects that this host keeps the file with the sha256 ${sha256 ?? '(none)'}, but the host does not keep it: name a download in the Plan`;
}

/**
 * Removes the staged binary, the partial file and its record, and syncs the directory. Files that
 * are missing do not matter.
 */
export async function discardDownload(
  at: Pick<DownloadRequest, 'staged' | 'paths'>,
  files: Files,
): Promise<void> {
  const { staged, paths } = at;
  for (const path of [staged, paths.part, paths.record]) await files.rm(path, { force: true });
  // Without this sync the files may exist again after power loss, and then nothing removes them.
  await unless('ENOENT', syncPath(dirname(staged), files));
}

/**
 * If the file has the wanted hash, makes the file executable, syncs it and returns true. The original agent may have
 * staged the file. A symbolic link is refused, because its target may change.
 */
async function isStaged(staged: string, wanted: string, files: Files): Promise<boolean> {
  const found = await files.lstat(staged).catch(() => undefined);
  // Guard staged-same. A file that is staged already needs the wanted hash.
  if (found?.isFile() !== true || (await hashFile(staged, files)) !== wanted) return false;
  await files.chmod(staged, EXECUTABLE);
  await syncPath(staged, files);
  return true;
}
