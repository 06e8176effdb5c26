/** Finds commits in git repositories that the user of a proof names on its command line. */
import { RefitError } from '../../src/util/errors.ts';
import { run } from '../../tools/controlplane/run.ts';

export interface WantedCommit {
  /** The option with which the user names the repository, such as `--source`. */
  readonly option: string;
  /** The path that the user gave. The repository may be bare. */
  readonly repository: string;
  /** What the repository must be of, such as `k3s-io/k3s-upgrade`. */
  readonly project: string;
  /** A tag, or `HEAD`. */
  readonly revision: string;
  /** A file or a folder of the commit by which the project is recognized. */
  readonly file: string;
}

/** The repository may belong to another user. */
export const gitIn = (repository: string): string[] => ['-C', repository, '-c', 'safe.directory=*'];

/** Resolves with the commit of the revision. Rejects with REFIT_USAGE if the repository is another one. */
export async function commitIn(wanted: WantedCommit): Promise<string> {
  const { option, repository, project, revision, file } = wanted;
  const tagged = revision === 'HEAD' ? '' : ` with the tag ${revision}`;
  const wants = `${option} wants a git repository of ${project}${tagged}, found ${repository}`;
  const name = revision === 'HEAD' ? revision : `refs/tags/${revision}`;
  const git = gitIn(repository);
  const found = await run('git', [...git, 'rev-parse', '--verify', `${name}^{commit}`]);
  if (!found.ok)
    throw new RefitError('REFIT_USAGE', `${wants}, where git says: ${found.stderr.trim()}`);
  const commit = found.stdout.trim();
  const isThere = await run('git', [...git, 'cat-file', '-e', `${commit}:${file}`]);
  if (!isThere.ok)
    throw new RefitError('REFIT_USAGE', `${wants}, where ${revision} has no ${file}`);
  return commit;
}
