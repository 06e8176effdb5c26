/** The work of a node on a disk that fails: the command, the files before, and the files that must be there afterwards. */
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
  /** How it ends where nothing goes wrong. */
  readonly end: 'Completed' | 'Failed';
  /** True where the new version never comes up as a service. */
  readonly isDead: boolean;
  /** Where the bytes lie that are not whole yet. */
  readonly part: string;
  command(url: string): SignalCommand;
  /** Before the agent's first step, and long ago. */
  prepare(disk: SunkenFiles): void;
  /** What must not be at any moment, in words. */
  wrongNow(disk: SunkenFiles): string[];
  /** What must not be once the work is over: `runs` is the version of the service. */
  wrongAtEnd(disk: SunkenFiles, end: string, runs: string | undefined): string[];
  /** What nobody may find after the end, where everything could be removed that was to be. */
  readonly leftovers: readonly string[];
}

/** The bytes of a payload of that version, recognised by its first bytes. */
export function bytesOf(version: string): Buffer {
  // Compared at every step of a disk; nobody changes them.
  return once(PAYLOADS, version, () => Buffer.from(`${version}\n${'x'.repeat(100_000)}`));
}

const PAYLOADS = new Map<string, Buffer>();

export function sha256Of(version: string): string {
  return createHash('sha256').update(bytesOf(version)).digest('hex');
}

/** Undefined where it is no whole binary. */
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
