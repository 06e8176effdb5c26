/**
 * The work of a node on a disk that fails: the command, the files before the work, and the files that must exist after
 * the work.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { upgradePathsOf } from '../../../src/agent/state/state-directory.ts';
import type { SignalCommand } from '../../../src/signal/annotations.ts';
import { once } from '../../model/numbering.ts';
import type { SunkenFiles } from './sunken-files.ts';

export const OLD = 'v1.36.1+k0s.0';
export const NEW = 'v1.36.2+k0s.0';
export const BINARY = '/usr/local/bin/k0s';
export const STATE = '/var/lib/refit';
export const IMAGES = '/var/lib/k0s/images';

export interface DiskWork {
  readonly name: string;
  /** The last status if no fault occurs. */
  readonly end: 'Completed' | 'Failed';
  /** True if the new version never starts as a service. */
  readonly isDead: boolean;
  /** The path of the partial download. */
  readonly part: string;
  command(url: string): SignalCommand;
  /** Writes the files that were there long before the first step of the agent. */
  prepare(disk: SunkenFiles): void;
  /** Returns descriptions of everything that must not be true at any moment. */
  wrongNow(disk: SunkenFiles): string[];
  /**
   * Returns descriptions of everything that must not be true when the work has ended. `runs` is the version of the
   * service.
   */
  wrongAtEnd(disk: SunkenFiles, end: string, runs: string | undefined): string[];
  /** The files that must not exist after the end, if no removal failed. */
  readonly leftovers: readonly string[];
}

/** Returns the payload of that version. Its first bytes contain the version. */
export function bytesOf(version: string): Buffer {
  // The buffer is reused, because it is compared at every step of a disk. Nobody changes it.
  return once(PAYLOADS, version, () => Buffer.from(`${version}\n${'x'.repeat(100_000)}`));
}

const PAYLOADS = new Map<string, Buffer>();

export function sha256Of(version: string): string {
  return createHash('sha256').update(bytesOf(version)).digest('hex');
}

/** Returns the version of the binary; undefined if the data is not a complete binary. */
export function versionAt(data: Buffer | undefined): string | undefined {
  return [OLD, NEW].find((version) => data?.equals(bytesOf(version)));
}

const { staged, part } = upgradePathsOf(BINARY);

function update(name: string, isDead: boolean): DiskWork {
  return {
    name,
    end: isDead ? 'Failed' : 'Completed',
    isDead,
    part,
    leftovers: [staged, part],
    command: (url) => ({ id: 0, kind: 'k0supdate', url, version: NEW, sha256: sha256Of(NEW) }),
    prepare: () => undefined,
    wrongNow: () => [],
    wrongAtEnd: (disk, end, runs) => {
      const wanted = end === 'Completed' ? NEW : OLD;
      return [
        ...(versionAt(disk.peek(BINARY)) === wanted
          ? []
          : [`${end}, and not ${wanted} at ${basename(BINARY)}`]),
        ...(runs === wanted ? [] : [`${end}, and not ${wanted} that runs`]),
      ];
    },
  };
}

export const UPDATE = update('an update', false);
export const ROLL_BACK = update('a roll-back', true);
