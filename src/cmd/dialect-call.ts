/** The calls of commands that need the dialects, and how such a command gets them. */
import { commandPartsOf } from '../cli/command-parts.ts';
import type { DialectModule } from '../cli/contract/dialect-module.ts';
import type { ReversibleParts } from '../cli/contract/roll-back.ts';
import type { CommandCall, CommandSpec } from '../cli/program.ts';

export interface DialectCall extends CommandCall {
  /** The modules of all dialects. */
  readonly modules: readonly DialectModule<string>[];
}

/** A command that needs the dialects. */
export type DialectSpec = CommandSpec<DialectCall>;

/** Returns the parts that all commands for users need. The session loads the dialects. */
export function partsOf({ modules, ...call }: DialectCall): ReversibleParts {
  return { modules, ...commandPartsOf(call) };
}

/** Returns the command with these modules in each call. */
export function withModules(
  { run, commands, ...spec }: DialectSpec,
  modules: DialectCall['modules'],
): CommandSpec {
  return {
    ...spec,
    ...(commands && { commands: commands.map((each) => withModules(each, modules)) }),
    ...(run && { run: async (flags, call) => await run(flags, { ...call, modules }) }),
  };
}
