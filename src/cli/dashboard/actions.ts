/**
 * Carries out the request that a button of the dashboard sends. Calls the same function as the corresponding command,
 * with the rights of the user who runs the dashboard.
 */
import { z } from 'zod';
import { approveWave } from '../controls/approve.ts';
import { applyControl } from '../controls/control-command.ts';
import { hold, unhold } from '../controls/hold.ts';
import { carryOutAbort, pauseBecause, resume } from '../controls/pause-abort.ts';
import { retry } from '../controls/retry.ts';
import { retryNode } from '../controls/retry-node.ts';
import type { ConnectionFlags } from '../options.ts';
import type { SessionParts } from '../status/status-session.ts';
import { captured } from './captured.ts';
import type { ActionRequest, ActionResult } from './state.ts';

const LONGEST_NAME = 600;
const LONGEST_REASON = 500;

const name = z.string().min(1).max(LONGEST_NAME);
const reason = z.string().max(LONGEST_REASON).exactOptional();
const requestSchema: z.ZodType<ActionRequest> = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('pause'), plan: name, reason }),
  z.strictObject({ action: z.literal('resume'), plan: name }),
  // The page asks the user before it sends this request, because an abort cannot be undone.
  z.strictObject({ action: z.literal('abort'), plan: name, reason, isConfirmed: z.literal(true) }),
  z.strictObject({ action: z.literal('approve'), plan: name, wave: z.int().min(1) }),
  z.strictObject({ action: z.literal('retry'), plan: name, node: name }),
  z.strictObject({ action: z.literal('retry-hooks'), plan: name }),
  z.strictObject({ action: z.literal('hold'), node: name, reason }),
  z.strictObject({ action: z.literal('unhold'), node: name }),
]);

/** Returns the request that the body contains; undefined if the body is not a valid request. */
export function actionIn(body: string): ActionRequest | undefined {
  try {
    return requestSchema.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

/** Resolves with what the command would print, or with one sentence that says why nothing was done. */
export async function carryOut(
  request: ActionRequest,
  flags: ConnectionFlags,
  parts: Omit<SessionParts, 'output'>,
): Promise<ActionResult> {
  return await captured(async (output) => await run(request, flags, { ...parts, output }));
}

async function run(request: ActionRequest, flags: ConnectionFlags, parts: SessionParts) {
  const { action } = request;
  if (action === 'hold')
    return await hold(request.node, { ...flags, reason: request.reason ?? '' }, parts);
  if (action === 'unhold') return await unhold(request.node, flags, parts);
  const chosen = { ...flags, ...planNamed(request.plan) };
  if (action === 'abort')
    return await carryOutAbort({ ...chosen, reason: request.reason ?? '' }, parts);
  if (action === 'approve') return await approveWave({ ...chosen, wave: request.wave }, parts);
  if (action === 'retry') return await retryNode(request.node, chosen, parts);
  if (action === 'retry-hooks') return await applyControl(retry(chosen.plan), chosen, parts);
  if (action === 'pause') return await applyControl(pauseBecause(request.reason), chosen, parts);
  return await applyControl(resume, chosen, parts);
}

/**
 * Returns the options that name the plan with this key. The name alone is ambiguous: the dialect of a plan without a namespace may
 * also be the name of a namespace.
 */
function planNamed(key: string) {
  const [dialect = '', namespace = '', ...names] = key.split('/');
  const plan = [dialect, namespace, ...names].filter((part) => part !== '').join('/');
  return { plan, dialect, ...(namespace === '' ? {} : { namespace }) };
}
