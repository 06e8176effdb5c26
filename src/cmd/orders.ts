/** Owns the commands that give orders: names who gives them, and what they look through. */
import { hostname, userInfo } from 'node:os';
import { abort } from '../cli/orders/abort.ts';
import { giveOrder } from '../cli/orders/command.ts';
import { pause, resume } from '../cli/orders/pause.ts';
import { retry } from '../cli/orders/retry.ts';
import { standardOutput } from '../cli/output.ts';
import type { AbortFlags, OrderFlags } from '../cli/program.ts';
import { DIALECTS } from '../dialects/registry.ts';
import { systemClock } from '../util/clock.ts';

const PARTS = { dialects: DIALECTS, clock: systemClock, output: standardOutput };

export async function runPause(flags: OrderFlags, signal: AbortSignal): Promise<number> {
  return await giveOrder(pause, flags, { ...PARTS, signal });
}

export async function runResume(flags: OrderFlags, signal: AbortSignal): Promise<number> {
  return await giveOrder(resume, flags, { ...PARTS, signal });
}

export async function runAbort(flags: AbortFlags, signal: AbortSignal): Promise<number> {
  const reason = flags.reason ?? `by ${userInfo().username}@${hostname()}`;
  return await giveOrder(abort(reason), flags, { ...PARTS, signal });
}

export async function runRetry(node: string, flags: OrderFlags, signal: AbortSignal): Promise<number> {
  return await giveOrder(retry(node), flags, { ...PARTS, signal });
}
