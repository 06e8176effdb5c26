/** Makes the parts that all commands for users need. */
import { standardOutput } from '../cli/output.ts';
import type { CommandCall } from '../cli/program.ts';
import type { SessionParts } from '../cli/status/status-session.ts';
import { MODULES } from '../dialects/modules.ts';
import { systemClock } from '../util/clock.ts';

/** Returns the parts. The session loads the dialects. */
export function partsOf({
  abort,
  output = standardOutput,
  clock = systemClock,
}: CommandCall): SessionParts {
  return { modules: MODULES, clock, output, abort };
}
