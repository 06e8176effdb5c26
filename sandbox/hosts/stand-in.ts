/** Makes stand-ins for k0s: small executables with a version in them, which answer the agent as k0s does. */
import { existsSync } from 'node:fs';
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

const PERL = '/usr/bin/perl';
const BACKUP = fileURLToPath(new URL('./backup.sh', import.meta.url));
const HEAD = fileURLToPath(new URL('./head.cjs', import.meta.url));

/**
 * Writes the file: `<path> version` prints its version, `<path> controller|worker` serves, `<path> backup` saves etcd. Perl starts ten times as fast as
 * Node, and tests start a thousand stand-ins; Node serves where there is no Perl.
 */
export async function buildStandIn(
  { version, path, broken, bytes = 0 }: StandIn,
  withPerl = existsSync(PERL),
): Promise<void> {
  const text = withPerl
    ? await perlFile(version, broken)
    : await nodeFile(version, broken, bytes > 0);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(
    path,
    text.length < bytes ? `${text}${'x'.repeat(bytes - text.length - 1)}\n` : text,
  );
  await chmod(path, 0o755);
}

/** It ends in BEGIN with its version, before the rest is compiled. */
async function perlFile(version: string, broken = ''): Promise<string> {
  return `#!${PERL}
our ($version, $broken);
BEGIN { ($version, $broken) = ('${version}', '${broken}'); if (($ARGV[0] // '') eq 'version') { print "$version\\n"; exit } if (($ARGV[0] // '') eq 'backup') { shift @ARGV; exec '/bin/sh', '${BACKUP}', @ARGV } }
${await readProgram('service.pl')}__END__
`;
}

/**
 * A line for sh and JavaScript both: the path of node may hold blanks and be longer than the kernel takes after `#!`. sh
 * tells the version, because a user without rights may not reach the file by a path that Node.js would read.
 */
async function nodeFile(
  version: string,
  broken: Broken | undefined,
  isPadded: boolean,
): Promise<string> {
  const preload = isPadded ? `export NODE_OPTIONS='--require "${HEAD}"'; ` : '';
  return `#!/bin/sh
':' //; [ "$1" = version ] && echo '${version}' && exit; [ "$1" = backup ] && shift && exec /bin/sh '${BACKUP}' "$@"; ${preload}exec '${process.execPath}' "$0" "$@"
globalThis.standIn = ${JSON.stringify({ version, broken })};
${await readProgram('service.cjs')}//`;
}

const readProgram = async (name: string): Promise<string> =>
  await readFile(new URL(`./${name}`, import.meta.url), 'utf8');
