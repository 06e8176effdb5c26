/** The source of k0s: a repository that the user has, and the versions of the programs that a release of k0s carries. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../../../src/util/errors.ts';
import { cacheFolder, must } from '../../../../tools/release/commands.ts';
import { commitIn, gitIn } from '../../repositories.ts';

export interface Source {
  /** The folder with the files of one commit. */
  readonly directory: string;
  readonly commit: string;
  /** The versions without a `v`, as k0s's Makefile names them. */
  readonly kubernetes: string;
  readonly containerd: string;
}

const VARIABLES = 'embedded-bins/Makefile.variables';

/** Resolves with the commit of a tag. Rejects with REFIT_USAGE if the repository lacks the tag, or is not one of k0s. */
export async function commitOf(repository: string, tag: string): Promise<string> {
  const wanted = { project: 'k0s', revision: tag, file: VARIABLES };
  return await commitIn({ option: '--source', repository, ...wanted });
}

/** Unpacks the files of a tag. `repository` may be bare. Throws REFIT_USAGE if the repository lacks the tag. */
export async function unpackSource(repository: string, tag: string): Promise<Source> {
  const commit = await commitOf(repository, tag);
  const git = gitIn(repository);
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
  const variables = await readFile(join(directory, VARIABLES), 'utf8');
  return {
    directory,
    commit,
    kubernetes: variable(variables, 'kubernetes_version'),
    containerd: variable(variables, 'containerd_version(?:_and_rev)?'),
  };
}

/** Returns the value of a variable up to its first `@`, because k0s writes some versions as `VERSION@REVISION`. */
function variable(text: string, name: string): string {
  const [, value] = new RegExp(`^${name} = ([^@\\s]+)`, 'm').exec(text) ?? [];
  if (value === undefined)
    throw new RefitError(
      'REFIT_TESTENV',
      `${VARIABLES} of k0s has no line "${name} = VERSION": this proof does not know this release of k0s`,
    );
  return value;
}
