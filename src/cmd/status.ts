/** Owns `refit status`: names what it looks through and where it writes. */
import { standardOutput } from '../cli/output.ts';
import type { StatusFlags } from '../cli/program.ts';
import { showStatus } from '../cli/status/command.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { systemClock } from '../util/clock.ts';

export async function runStatus(flags: StatusFlags, signal: AbortSignal): Promise<number> {
  return await showStatus(flags, { dialects: DIALECTS, clock: systemClock, output: standardOutput, signal });
}
