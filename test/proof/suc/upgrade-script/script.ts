/** Takes the script that upgrades K3s, and how its image starts it, from a git repository of k3s-io/k3s-upgrade. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../../../src/util/errors.ts';
import { must } from '../../../../tools/release/commands.ts';
import { commitIn, gitIn } from '../../repositories.ts';

const FILE = 'scripts/upgrade.sh';

export interface UpgradeScript {
  readonly commit: string;
  /** The path of the script on this machine. */
  readonly path: string;
  /** The path of the script in its image. */
  readonly place: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** Resolves with the newest commit. Rejects with REFIT_USAGE if the repository is another one. */
export async function commitOfScript(repository: string): Promise<string> {
  const wanted = { project: 'k3s-io/k3s-upgrade', revision: 'HEAD', file: FILE };
  return await commitIn({ option: '--k3s-upgrade', repository, ...wanted });
}

/** `source` is a git repository, with or without a work tree. The newest commit of it is used. */
export async function takeScript(source: string, directory: string): Promise<UpgradeScript> {
  const commit = await commitOfScript(source);
  await mkdir(directory);
  const archive = join(directory, 'source.tar');
  await must('git', [...gitIn(source), 'archive', '--output', archive, commit, FILE, 'Dockerfile']);
  await must('tar', ['-xf', archive, '-C', directory]);
  const dockerfile = await readFile(join(directory, 'Dockerfile'), 'utf8');
  const first = (pattern: RegExp): string => {
    const [, text] = pattern.exec(dockerfile) ?? [];
    if (text === undefined)
      throw new RefitError('REFIT_TESTENV', `the Dockerfile of ${commit} has no line ${pattern}`);
    return text;
  };
  return {
    commit,
    path: join(directory, FILE),
    place: first(/^COPY scripts\/upgrade\.sh \/(\S+)$/m),
    entrypoint: JSON.parse(first(/^ENTRYPOINT (\[.*\])$/m)) as string[],
    command: JSON.parse(first(/^CMD (\[.*\])$/m)) as string[],
  };
}
