/** Runs Linux programs for another processor, with user-mode QEMU and the libraries of the image. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fetchLibraries } from '../../tools/release/debian.ts';
import type { Platform } from '../../tools/release/node-package.ts';

const CACHE = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'refit', 'qemu');
const MACHINES = { arm64: 'aarch64', x64: 'x86_64' } as const;

/**
 * Returns the emulator from PATH. If PATH has no emulator, returns the emulator of Debian, and keeps its file in the
 * cache. Throws if there is no emulator.
 */
function findQemu({ arch }: Platform): string {
  const name = `qemu-${MACHINES[arch]}-static`;
  if (spawnSync(name, ['--version']).status === 0) return name;
  const kept = join(CACHE, name);
  if (existsSync(kept)) return kept;
  mkdirSync(CACHE, { recursive: true });
  const staging = mkdtempSync(join(CACHE, 'staging-'));
  try {
    const unpack = `dpkg-deb --fsys-tarfile qemu-user-static_*.deb | tar -x ./usr/bin/${name}`;
    const fetch =
      'apt-get download qemu-user-static || { apt-get update && apt-get download qemu-user-static; }';
    execFileSync('sh', ['-ec', `${fetch}\n${unpack}`], {
      cwd: staging,
      stdio: 'pipe',
      timeout: 300_000,
    });
    renameSync(join(staging, 'usr/bin', name), kept);
  } finally {
    rmSync(staging, { recursive: true });
  }
  return kept;
}

/**
 * Writes the libraries into the new `directory`. Returns the start of a command line, to which the caller appends the
 * path of the program.
 */
export async function emulator(
  platform: Platform,
  directory: string,
): Promise<readonly [string, ...string[]]> {
  const qemu = findQemu(platform);
  const { entries } = await fetchLibraries(platform.debianArch);
  for (const entry of entries) {
    const file = join(directory, entry.path);
    mkdirSync(dirname(file), { recursive: true });
    if ('link' in entry) symlinkSync(entry.link, file);
    else if ('content' in entry) {
      writeFileSync(file, entry.content);
      chmodSync(file, entry.mode);
    }
  }
  for (const name of ['lib', 'lib64'])
    if (existsSync(join(directory, 'usr', name))) symlinkSync(`usr/${name}`, join(directory, name));
  return [qemu, '-L', directory];
}

/** Returns the reason why no program of that platform can run here; undefined if programs can run. */
export function whyNoEmulator(platform: Platform): string | undefined {
  try {
    findQemu(platform);
    return undefined;
  } catch (error) {
    return `there is no user-mode QEMU, and Debian's cannot be fetched: ${String(error).split('\n')[0]}`;
  }
}
