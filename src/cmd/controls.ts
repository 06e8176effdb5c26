/** Runs `refit pause`, `resume`, `abort` and `retry` on this cluster's dialects. */
import { hostname, userInfo } from 'node:os';
import { abort as abortPlan } from '../cli/controls/abort.ts';
import { applyControl, type ControlFlags } from '../cli/controls/command.ts';
import { pause, resume } from '../cli/controls/pause.ts';
import { retry } from '../cli/controls/retry.ts';
import { standardOutput } from '../cli/output.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { systemClock } from '../util/clock.ts';

export interface AbortFlags extends ControlFlags {
  readonly reason?: string;
}

const PARTS = { dialects: DIALECTS, clock: systemClock, output: standardOutput };

export async function runPause(flags: ControlFlags, abort: AbortSignal): Promise<number> {
  return await applyControl(pause, flags, { ...PARTS, abort });
}

export async function runResume(flags: ControlFlags, abort: AbortSignal): Promise<number> {
  return await applyControl(resume, flags, { ...PARTS, abort });
}

export async function runAbort(flags: AbortFlags, abort: AbortSignal): Promise<number> {
  const reason = flags.reason ?? `by ${userInfo().username}@${hostname()}`;
  return await applyControl(abortPlan(reason), flags, { ...PARTS, abort });
}

export async function runRetry(node: string, flags: ControlFlags, abort: AbortSignal): Promise<number> {
  return await applyControl(retry(node), flags, { ...PARTS, abort });
}
