/** Makes stand-ins for k0s: small executables with a version in them, which answer the agent as k0s does. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * How a build can be bad though its file is whole: it ends at once, never answers, or answers with another version; or it
 * does so soon after its first answer.
 */
export type Broken = 'crashes' | 'hangs' | 'wrong-version' | 'crashes-later' | 'hangs-later';

export interface StandIn {
  readonly version: string;
  /** Where to write the file; its directory is made. */
  readonly path: string;
  readonly broken?: Broken;
  /** Size of the file where more than the least is wanted, for downloads that take a while. */
  readonly bytes?: number;
}

const HEAD = fileURLToPath(new URL('./head.cjs', import.meta.url));
const PROGRAM = new URL('./service.cjs', import.meta.url);

/** Writes the file: `<path> version` prints its version, `<path> controller|worker` serves. */
export async function buildStandIn({ version, path, broken, bytes = 0 }: StandIn): Promise<void> {
  // A line for sh and JavaScript both: the path of node may hold blanks and be longer than the kernel takes after `#!`. sh
  // tells the version, because a user without rights may not reach the file by a path that Node.js would read.
  const preload = bytes === 0 ? '' : `export NODE_OPTIONS='--require "${HEAD}"'; `;
  const start = `#!/bin/sh\n':' //; [ "$1" = version ] && echo '${version}' && exit; ${preload}exec '${process.execPath}' "$0" "$@"\n`;
  const text = `${start}globalThis.standIn = ${JSON.stringify({ version, broken })};\n${await readFile(PROGRAM, 'utf8')}`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text.length + 3 < bytes ? `${text}//${'x'.repeat(bytes - text.length - 3)}\n` : text);
  await chmod(path, 0o755);
}
