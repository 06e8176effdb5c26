/** Makes stand-ins for k0s: small executables with a version in them, which answer the agent as k0s does. */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

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

const PROGRAM = new URL('./service.pl', import.meta.url);
const PERL = '/usr/bin/perl';

/** Writes the file: `<path> version` prints its version, `<path> controller|worker` serves. Perl starts ten times as fast as Node. */
export async function buildStandIn({ version, path, broken, bytes = 0 }: StandIn): Promise<void> {
  if (!existsSync(PERL)) throw new Error(`stand-ins for k0s need ${PERL}: install Perl`);
  // It ends in BEGIN with its version, before the rest is compiled.
  const text = `#!${PERL}
our ($version, $broken);
BEGIN { ($version, $broken) = ('${version}', '${broken ?? ''}'); if (($ARGV[0] // '') eq 'version') { print "$version\\n"; exit } }
${await readFile(PROGRAM, 'utf8')}__END__
`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text.length < bytes ? `${text}${'x'.repeat(bytes - text.length - 1)}\n` : text);
  await chmod(path, 0o755);
}
