/** Keeps downloads from filling the disk: a reserve stays free, and a download waits until there is room. */
import { backoffDelay, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import { type Files, isDiskFull } from '../state/durable-files.ts';

class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
  /** Returns true if the disk now has room for the whole download, as far as the size of the download is known. */
  readonly hasRoom: () => Promise<boolean>;

  constructor(message: string, hasRoom: () => Promise<boolean>) {
    super(message);
    this.hasRoom = hasRoom;
  }
}

/** The free space is measured each time that this many bytes have arrived. */
const STEP_BYTES = 4 * 1024 * 1024;
const RETRY = { base: 1_000, cap: 30_000 };
/**
 * A download fails after it has filled the disk this many times. Together with the pauses this is about half an hour.
 * Without a limit, a server that never sends a size could fill the disk for hours.
 */
const MOST_FILLS = 10;
/**
 * The longest pause after a full quota. Nothing signals when the quota has room again, and each attempt is a whole
 * download, so the pauses grow up to this time.
 */
const BLIND_CAP_MS = 600_000;

type StatFiles = Pick<Files, 'statfs'>;

export interface DiskRoom {
  /**
   * Rejects unless this many bytes fit without using the reserve: with a NoRoomError if they may fit later, and with
   * another error if the file system is too small.
   */
  readonly require: (bytes: number) => Promise<void>;
  /** Returns the free bytes without the reserve; 0 if the reserve is not free. */
  readonly free: () => Promise<number>;
  /**
   * Counts bytes that are about to be written, and rejects like `require`. The count is needed because the server may
   * send more bytes than it announced, and because other programs may fill the disk.
   */
  readonly count: (bytes: number) => Promise<void>;
}

/** Watches the free space of one download. `begun` is the number of its bytes that are on the disk already. */
export function diskRoom(
  directory: string,
  reserveBytes: number,
  files: StatFiles,
  begun = 0,
): DiskRoom {
  let written = begun;
  let unchecked = 0;
  const require: DiskRoom['require'] = async (bytes) => {
    const { free, size } = await measure(directory, files);
    const needed = bytes + reserveBytes;
    if (free >= needed) return;
    const text = `${directory} has ${free} bytes free, the download needs ${bytes} and the reserve ${reserveBytes} (--disk-reserve)`;
    if (needed > size) throw new Error(`${text}; the whole file system has only ${size}`);
    const whole = needed + written;
    throw new NoRoomError(text, async () => (await measure(directory, files)).free >= whole);
  };
  return {
    require,
    free: async () => Math.max(0, (await measure(directory, files)).free - reserveBytes),
    async count(bytes) {
      unchecked += bytes;
      if (unchecked < STEP_BYTES) return;
      await require(unchecked);
      written += unchecked;
      unchecked = 0;
    },
  };
}

/** Returns the free space. A file system that does not report its size counts as having enough room. */
async function measure(
  directory: string,
  files: StatFiles,
): Promise<{ free: number; size: number }> {
  const found = await files.statfs(directory).catch(() => undefined);
  if (found === undefined || found.blocks === 0) return { free: Infinity, size: Infinity };
  return { free: found.bavail * found.bsize, size: found.blocks * found.bsize };
}

/**
 * Calls `work` with the limits, in which `totalMs` is the time that is left. If the disk is full, `discard` removes
 * what `work` wrote, and then `work` is called again. It is called again at once if `makeRoom` resolves with true,
 * because `makeRoom` then removed other files. Otherwise it is called again after a pause, once there is room.
 */
export async function whenThereIsRoom<T extends { readonly totalMs: number }>(
  work: (left: T) => Promise<void>,
  discard: () => Promise<void>,
  limits: T,
  { clock, random, log, abort }: Tools & { readonly abort: AbortSignal },
  makeRoom?: () => Promise<boolean>,
): Promise<void> {
  const deadline = clock.monotonic() + limits.totalMs;
  let waits = 0;
  const pause = async (error: unknown, cap = RETRY.cap): Promise<void> => {
    const waitMs = backoffDelay(waits++, { ...RETRY, cap, random });
    if (clock.monotonic() + waitMs > deadline)
      throw new Error('the disk stayed full', { cause: error });
    await sleep(clock, waitMs, abort);
  };
  for (let fills = 1; ; fills++) {
    try {
      return await work({ ...limits, totalMs: deadline - clock.monotonic() });
    } catch (error) {
      if (!(error instanceof NoRoomError) && !isDiskFull(error)) throw error;
      await discard();
      if ((await makeRoom?.()) === true) continue;
      if (fills === MOST_FILLS)
        throw new Error(`the disk was full ${fills} times`, { cause: error });
      log.warn(
        'the disk is full: the agent removed the download, and tries again when there is room',
        {
          reason: messageOf(error),
        },
      );
      await pause(error, error instanceof NoRoomError ? RETRY.cap : BLIND_CAP_MS);
      if (error instanceof NoRoomError) while (!(await error.hasRoom())) await pause(error);
    }
  }
}
