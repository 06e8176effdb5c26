/** Carries out what a button of the dashboard asks for: the same function as the command of that name, as the user who runs the dashboard. */
import { z } from 'zod';
import { describeProblem, isForbidden, type StatusError } from '../../kube/status-error.ts';
import { approveWave } from '../controls/approve.ts';
import { applyControl } from '../controls/control-command.ts';
import { hold, unhold } from '../controls/hold.ts';
import { carryOutAbort, pause, resume } from '../controls/pause-abort.ts';
import { retryNode } from '../controls/retry-node.ts';
import type { ConnectionFlags } from '../options.ts';
import type { SessionParts } from '../status/status-session.ts';
import type { ActionRequest, ActionResult } from './state.ts';

const LONGEST_NAME = 600;
const LONGEST_REASON = 500;

const name = z.string().min(1).max(LONGEST_NAME);
const reason = z.string().max(LONGEST_REASON).exactOptional();
const requestSchema: z.ZodType<ActionRequest> = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('pause'), plan: name }),
  z.strictObject({ action: z.literal('resume'), plan: name }),
  // The page asks before it sends this, because an abort cannot be taken back.
  z.strictObject({ action: z.literal('abort'), plan: name, reason, isConfirmed: z.literal(true) }),
  z.strictObject({ action: z.literal('approve'), plan: name, wave: z.int().min(1) }),
  z.strictObject({ action: z.literal('retry'), plan: name, node: name }),
  z.strictObject({ action: z.literal('hold'), node: name, reason }),
  z.strictObject({ action: z.literal('unhold'), node: name }),
]);

/** Returns the request in a body; undefined if it is none. */
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
  parts: SessionParts,
): Promise<ActionResult> {
  const lines: string[] = [];
  const output = {
    isTerminal: false,
    hasColours: false,
    size: () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }),
    write: (text: string): void => void lines.push(...text.trimEnd().split('\n')),
  };
  try {
    await run(request, flags, { ...parts, output });
    return { isDone: true, lines };
  } catch (error) {
    return { isDone: false, lines: [...lines, refusalFor(error)] };
  }
}

async function run(request: ActionRequest, flags: ConnectionFlags, parts: SessionParts) {
  const { action } = request;
  if (action === 'hold')
    return await hold(request.node, { ...flags, reason: request.reason ?? '' }, parts);
  if (action === 'unhold') return await unhold(request.node, flags, parts);
  const chosen = { ...flags, plan: planNamed(request.plan) };
  if (action === 'abort')
    return await carryOutAbort({ ...chosen, reason: request.reason ?? '' }, parts);
  if (action === 'approve') return await approveWave({ ...chosen, wave: request.wave }, parts);
  if (action === 'retry') return await retryNode(request.node, chosen, parts);
  return await applyControl(action === 'pause' ? pause : resume, chosen, parts);
}

/** Returns the value of `--plan` for the key of a plan. A plan without a namespace has an empty part. */
function planNamed(key: string): string {
  return key
    .split('/')
    .filter((part) => part !== '')
    .join('/');
}

const MISSING_RIGHT =
  /User "(?<user>[^"]*)" cannot (?<verb>\w+) resource "(?<resource>[^"]*)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?/;

function refusalFor(error: unknown): string {
  const right = isForbidden(error) ? missingRight(error) : undefined;
  return right ?? describeProblem(error).line;
}

/** Returns a sentence that names the missing right; undefined if an admission policy refused, which gives its own reason. */
function missingRight({ message }: StatusError): string | undefined {
  const found = MISSING_RIGHT.exec(message)?.groups;
  if (found === undefined) return undefined;
  const { user, verb, resource, group, namespace } = found;
  const kind = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in the namespace ${namespace}`;
  return `Refused: the user ${user} has no right to ${verb} ${kind}${where}.`;
}
