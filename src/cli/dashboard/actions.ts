/**
 * Carries out the request that a button of the dashboard sends. Calls the same function as the corresponding command,
 * with the rights of the user who runs the dashboard.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { RefitError } from '../../util/errors.ts';
import type { ReversibleParts } from '../contract/roll-back.ts';
import { accept, approveWave } from '../controls/approve.ts';
import { applyControl } from '../controls/control-command.ts';
import { type DryRunFlags, dryRunLines } from '../controls/dry-run.ts';
import { hold, unhold } from '../controls/hold.ts';
import { openingLength } from '../controls/opening-length.ts';
import { carryOutAbort, pauseBecause, resume } from '../controls/pause-abort.ts';
import { retry } from '../controls/retry.ts';
import { retryNode } from '../controls/retry-node.ts';
import { retrySkipped } from '../controls/retry-skipped.ts';
import { rollBackPlan } from '../controls/roll-back-plan.ts';
import { start } from '../controls/start.ts';
import type { ConnectionFlags } from '../options.ts';
import { captured } from './captured.ts';
import type { ActionRequest, ActionResult, AskedRequest, RollBackRequest } from './state.ts';

const LONGEST_NAME = 600;
const LONGEST_REASON = 500;

const LONGEST_IMAGE = 1024;
const LONGEST_DURATION = 40;

const name = z.string().min(1).max(LONGEST_NAME);
const reason = z.string().max(LONGEST_REASON).exactOptional();
const isConfirmed = z.boolean();
const ofRollBack = {
  action: z.literal('rollback'),
  plan: name,
  reason: z.string().max(LONGEST_REASON).regex(/\S/),
  image: z.string().min(1).max(LONGEST_IMAGE).exactOptional(),
};
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
  z.strictObject({
    action: z.literal('start'),
    plan: name,
    for: z.string().min(1).max(LONGEST_DURATION),
    reason,
    blackouts: z.literal(true).exactOptional(),
    isConfirmed,
  }),
  z.strictObject({ action: z.literal('accept'), plan: name, check: name, reason, isConfirmed }),
  z.strictObject({ action: z.literal('retry-skipped'), plan: name, isConfirmed }),
  z.discriminatedUnion('isConfirmed', [
    z.strictObject({ ...ofRollBack, isConfirmed: z.literal(false) }),
    z.strictObject({
      ...ofRollBack,
      isConfirmed: z.literal(true),
      typed: z.literal('yes'),
      seen: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ]),
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
  parts: Omit<ReversibleParts, 'output'>,
): Promise<ActionResult> {
  if (request.action === 'rollback') return await rollBackSeen(request, flags, parts);
  if ('isConfirmed' in request && !request.isConfirmed)
    return withoutNote(await carryOutAsCommand(request, { ...flags, ...DRY_RUN }, parts));
  return await carryOutAsCommand(request, flags, parts);
}

const DRY_RUN = { dryRun: 'client' } as const;
type Flags = ConnectionFlags & DryRunFlags;

async function carryOutAsCommand(
  request: ActionRequest,
  flags: Flags,
  parts: Omit<ReversibleParts, 'output'>,
): Promise<ActionResult> {
  return await captured(async (output) => await run(request, flags, { ...parts, output }));
}

/** Returns the result of a dry run without the line that says that it was one, because the page says it in its own words. */
function withoutNote({ isDone, lines }: ActionResult): ActionResult {
  const notes = dryRunLines(DRY_RUN);
  return { isDone, lines: lines.filter((line) => !notes.includes(line)) };
}

/**
 * Rolls a plan back if this changes exactly what the viewer has seen. The command itself shows the change and asks about
 * it at once, but a page may stay open for hours.
 */
async function rollBackSeen(
  request: RollBackRequest,
  flags: ConnectionFlags,
  parts: Omit<ReversibleParts, 'output'>,
): Promise<ActionResult> {
  const dry = withoutNote(await carryOutAsCommand(request, { ...flags, ...DRY_RUN }, parts));
  if (!dry.isDone) return dry;
  const id = hash('sha256', dry.lines.join('\n'));
  if (!request.isConfirmed) return { ...dry, id };
  if (request.seen === id) return await carryOutAsCommand(request, flags, parts);
  return {
    isDone: false,
    lines: [
      'Nothing was written, because the roll-back would now change something else than the page has shown: look at it again.',
    ],
  };
}

async function run(request: ActionRequest, flags: Flags, parts: ReversibleParts) {
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
  if (action === 'rollback') {
    const { reason, image } = request;
    const named = image === undefined ? {} : { image };
    return await rollBackPlan({ ...chosen, ...named, reason, yes: true }, parts);
  }
  if ('isConfirmed' in request) return await runAsked(request, chosen, parts);
  return await applyControl(resume, chosen, parts);
}

async function runAsked(
  request: AskedRequest,
  chosen: Flags & ReturnType<typeof planNamed>,
  parts: ReversibleParts,
) {
  if (request.action === 'retry-skipped') return await applyControl(retrySkipped, chosen, parts);
  const { reason = '' } = request;
  if (request.action === 'accept')
    return await accept({ ...chosen, check: request.check, reason }, parts);
  const length = openingLength(request.for);
  if (length === undefined)
    throw new RefitError('REFIT_USAGE', 'the window cannot be open for that long', {
      hint: 'write hours or minutes, such as 2h or 90m, and at most 168h, which is 7 days',
    });
  const blackouts = request.blackouts === true;
  return await start({ ...chosen, for: length, reason, blackouts }, parts);
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
