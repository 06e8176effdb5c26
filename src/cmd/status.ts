/** Owns `refit status`: names what it looks through and where it writes. */
import { standardOutput } from '../cli/output.ts';
import type { StatusFlags } from '../cli/program.ts';
import { showStatus } from '../cli/status/command.ts';
import type { PlanView } from '../cli/status/view.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { systemClock } from '../util/clock.ts';
import { EXIT, RefitError } from '../util/errors.ts';

/** Resolves with the exit code; rejects with REFIT_PLAN_FAILED where a watch saw a plan end without success. */
export async function runStatus(flags: StatusFlags, signal: AbortSignal): Promise<number> {
  let last: readonly PlanView[] = [];
  const onLook = (plans: readonly PlanView[]): void => {
    last = plans;
  };
  const code = await showStatus(flags, {
    dialects: DIALECTS,
    clock: systemClock,
    output: standardOutput,
    signal,
    onLook,
  });
  if (code !== EXIT.failed) return code;
  const failed = last.filter(({ phase }) => phase !== 'done');
  const ends = failed.map(
    ({ kind, name, phase, reason }) => `${kind} ${name} is ${phase}: ${reason ?? 'no reason was given'}`,
  );
  throw new RefitError('REFIT_PLAN_FAILED', ends.join('; '));
}
