/** Makes the parts that all commands for users need. */
import { standardOutput } from '../cli/output.ts';
import type { CommandCall } from '../cli/program.ts';
import type { SessionParts } from '../cli/status/status-session.ts';
import { systemClock } from '../util/clock.ts';

/** Returns the parts. The dialects are loaded when this function is called, so that `refit` starts fast. */
export async function partsOf({
  abort,
  output = standardOutput,
  clock = systemClock,
}: CommandCall): Promise<SessionParts> {
  const { DIALECTS } = await import('../dialects/registry.ts');
  return { dialects: DIALECTS, clock, output, abort };
}
