/** Runs `refit validate` with all dialects, for tests. */
import { validate as validateWith } from '../../../src/cli/validate.ts';
import { MODULES } from '../../../src/dialects/modules.ts';

export async function validate(
  paths: readonly string[],
  write: (text: string) => void,
): Promise<void> {
  await validateWith(paths, write, MODULES);
}
