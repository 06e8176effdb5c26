/** Makes the parts of a command from its call. */
import { systemClock } from '../util/clock.ts';
import type { CommandParts } from './contract/object-commands.ts';
import { standardOutput } from './output.ts';
import type { CommandCall } from './program.ts';

export function commandPartsOf({
  abort,
  output = standardOutput,
  clock = systemClock,
}: CommandCall): CommandParts {
  return { clock, output, abort };
}
