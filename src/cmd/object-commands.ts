/** Finds the commands for objects that are no plans, such as Machines. */
import type { DialectModule } from '../cli/contract/dialect-module.ts';
import type { ObjectCommands } from '../cli/contract/object-commands.ts';
import { RefitError } from '../util/errors.ts';

/** Resolves with the commands of the one dialect that has such objects. */
export async function objectCommands(
  modules: readonly Pick<DialectModule, 'objects'>[],
): Promise<ObjectCommands> {
  const [load] = modules.flatMap(({ objects }) => objects ?? []);
  if (load === undefined)
    throw new RefitError('REFIT_USAGE', 'no dialect has objects for this command');
  return await load();
}
