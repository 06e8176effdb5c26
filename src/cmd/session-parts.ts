/** Makes the parts that all commands for users need. */
import { commandPartsOf } from '../cli/command-parts.ts';
import type { CommandCall } from '../cli/program.ts';
import type { SessionParts } from '../cli/status/status-session.ts';
import { MODULES } from '../dialects/modules.ts';

/** Returns the parts. The session loads the dialects. */
export function partsOf(call: CommandCall): SessionParts {
  return { modules: MODULES, ...commandPartsOf(call) };
}
