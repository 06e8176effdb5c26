/** Owns `refit validate`: says of a plan file, without any cluster, whether it can be carried out as written. */
import { readFile } from 'node:fs/promises';
import { parsePlanFile } from '../api/autopilot/read-plan.ts';
import { problemsOf } from '../dialects/autopilot/problems.ts';
import { EXIT, messageOf, RefitError } from '../util/errors.ts';

/** Resolves with the exit code; rejects with REFIT_FILE naming the file, each field, what was found and what would be right. */
export async function validate(path: string, write: (text: string) => void): Promise<number> {
  const plan = parsePlanFile(await readText(path), path);
  const problems = problemsOf(plan);
  if (problems.length > 0)
    throw new RefitError('REFIT_FILE', `${path}: ${problems.map(({ message }) => message).join('; ')}`);
  const commands = plan.spec.commands.length;
  write(
    `${path}: Plan ${plan.metadata.name} (${plan.spec.id}) with ${commands} command${commands === 1 ? '' : 's'} can be carried out\n`,
  );
  return EXIT.ok;
}

/** Rejects with REFIT_FILE. */
export async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    throw new RefitError('REFIT_FILE', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
}
