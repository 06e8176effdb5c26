/** The source of k0s: a repository that the user has, and the versions of the programs that a release of k0s carries. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../../../src/util/errors.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { cacheFolder, must } from '../../../../tools/release/commands.ts';

export interface Source {
  /** The folder with the files of one commit. */
  readonly directory: string;
  readonly commit: string;
  /** The versions without a `v`, as k0s's Makefile names them. */
  readonly kubernetes: string;
  readonly containerd: string;
}

/** Unpacks the files of a tag. `repository` may be bare. Throws REFIT_USAGE if the repository lacks the tag. */
export async function unpackSource(repository: string, tag: string): Promise<Source> {
  const git = ['-C', repository, '-c', 'safe.directory=*'];
  const found = await run('git', [...git, 'rev-parse', '--verify', `${tag}^{commit}`]);
  if (!found.ok)
    throw new RefitError(
      'REFIT_USAGE',
      `--source wants a git repository of k0s with the tag ${tag}, found ${repository}, where git says: ${found.stderr.trim()}`,
    );
  const commit = found.stdout.trim();
  const directory = join(await cacheFolder('proof'), `k0s-source-${commit}`);
  if (!existsSync(directory)) {
    const staging = await mkdtemp(`${directory}-`);
    try {
      const archive = join(staging, 'source.tar');
      await must('git', [...git, 'archive', '--output', archive, commit]);
      await must('tar', ['-xf', archive, '-C', staging]);
      await rm(archive);
      await rename(staging, directory);
    } catch (error) {
      await rm(staging, { recursive: true, force: true });
      throw error;
    }
  }
  const variables = await readFile(join(directory, 'embedded-bins/Makefile.variables'), 'utf8');
  return {
    directory,
    commit,
    kubernetes: variable(variables, 'kubernetes_version'),
    containerd: variable(variables, 'containerd_version(?:_and_rev)?'),
  };
}

/** The value of a variable up to its first `@`, because k0s writes some versions as `VERSION@REVISION`. */
function variable(text: string, name: string): string {
  const [, value] = new RegExp(`^${name} = ([^@\\s]+)`, 'm').exec(text) ?? [];
  if (value === undefined)
    throw new RefitError(
      'REFIT_TESTENV',
      `embedded-bins/Makefile.variables of k0s has no line "${name} = VERSION": this proof does not know this release of k0s`,
    );
  return value;
}
