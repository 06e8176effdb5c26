/** Makes stand-ins for k0s: small executables with a version in them, which answer the agent as k0s does. */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The ways in which a build with a complete file can be bad: it ends at once, never answers, or answers with another
 * version. With `-later`, it ends or stops answering soon after its first answer.
 */
export type Broken = 'crashes' | 'hangs' | 'wrong-version' | 'crashes-later' | 'hangs-later';

export interface StandIn {
  readonly version: string;
  /** The path of the file. Its directory is created. */
  readonly path: string;
  readonly broken?: Broken;
  /** The size of the file in bytes, if the file must be larger than necessary, for downloads that take a while. */
  readonly bytes?: number;
}

const PERL = '/usr/bin/perl';
const BACKUP = fileURLToPath(new URL('./backup.sh', import.meta.url));
const HEAD = fileURLToPath(new URL('./head.cjs', import.meta.url));

/**
 * Writes the file: `<path> version` prints its version, `<path> controller|worker` runs the service, `<path> backup`
 * saves etcd. Perl starts ten times as fast as Node.js, and tests start a thousand stand-ins. Node.js runs the service
 * if there is no Perl.
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

/** For `version`, the program ends in BEGIN, before Perl compiles the rest. */
async function perlFile(version: string, broken = ''): Promise<string> {
  return `#!${PERL}
our ($version, $broken);
BEGIN { ($version, $broken) = ('${version}', '${broken}'); if (($ARGV[0] // '') eq 'version') { print "$version\\n"; exit } if (($ARGV[0] // '') eq 'backup') { shift @ARGV; exec '/bin/sh', '${BACKUP}', @ARGV } }
${await readProgram('service.pl')}__END__
`;
}

/**
 * The second line is valid in sh and in JavaScript, because the path of Node.js may contain blanks and may be longer
 * than the kernel allows after `#!`. sh prints the version, because a user without rights may be unable to read the
 * file by the path that Node.js would use.
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
