/** Runs the commands that only read: `refit status`, `why` and `preview`. */

import type { ConnectionFlags } from '../cli/options.ts';
import { standardOutput } from '../cli/output.ts';
import { type PreviewFlags, showPreview } from '../cli/preview/command.ts';
import { type StatusFlags, showStatus } from '../cli/status/command.ts';
import { stateOf } from '../cli/status/text.ts';
import type { PlanView } from '../cli/status/view.ts';
import { showWhy } from '../cli/why/command.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { systemClock } from '../util/clock.ts';
import { EXIT, RefitError } from '../util/errors.ts';

const PARTS = { dialects: DIALECTS, clock: systemClock, output: standardOutput };

export async function runWhy(node: string | undefined, flags: ConnectionFlags, abort: AbortSignal): Promise<number> {
  return await showWhy(node, flags, { ...PARTS, abort });
}

export async function runPreview(flags: PreviewFlags, abort: AbortSignal): Promise<number> {
  return await showPreview(flags, { ...PARTS, abort });
}

/** Resolves with the exit code; rejects with REFIT_PLAN_FAILED where a watch saw a plan end without success. */
export async function runStatus(flags: StatusFlags, abort: AbortSignal): Promise<number> {
  let last: readonly PlanView[] = [];
  const onView = (plans: readonly PlanView[]): void => {
    last = plans;
  };
  const code = await showStatus(flags, { ...PARTS, abort, onView });
  if (code !== EXIT.failed) return code;
  const failed = last.filter(({ phase }) => phase !== 'done');
  const ends = failed.map(
    (plan) => `${plan.kind} ${plan.name} ${stateOf(plan)}: ${plan.reason ?? 'no reason was given'}`,
  );
  throw new RefitError('REFIT_PLAN_FAILED', ends.join('; '));
}
