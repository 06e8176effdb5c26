/** Answers one call of a hook. It decodes the body, answers in time, and turns every error into a Failure response. */
import type { ZodType } from 'zod';
import type { HookName, HookResponse, UpdateMachineResponse } from '../../../api/capi/hooks.ts';
import * as hooks from '../../../api/capi/hooks.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import type { Clock } from '../../../util/clock.ts';
import { messageOf } from '../../../util/errors.ts';
import type { Json } from '../../../util/json.ts';
import { canNote, updateNote, waitNote } from '../plan/machine-events.ts';
import { OwnerWaits, ownerWaits } from '../plan/owner-waits.ts';
import { failure, underWay } from '../plan/update-machine.ts';
import type { CanRequest } from './can-update.ts';
import { discovery } from './routes.ts';
import { settingsProblem } from './settings.ts';
import { type CanHook, canUpdate } from './updaters/answer-can.ts';
import { describeIssue } from './updaters/hook-patch.ts';
import { forgetUnasked } from './updaters/refused-changes.ts';
import { type StepTools, updateInSteps } from './updaters/update-steps.ts';

/** Answers one call of `hook` within `withinMs` milliseconds. Never rejects. */
export type AnswerHook = (hook: HookName, body: string, withinMs: number) => Promise<HookResponse>;

export type ServiceParts = StepTools;

export function hookService(parts: ServiceParts): AnswerHook {
  return async (hook, body, withinMs) => {
    try {
      return await answer(parts, hook, JSON.parse(body) as Json, withinMs);
    } catch (error) {
      return refusal(
        hook,
        error instanceof SyntaxError ? 'the body is not JSON' : messageOf(error),
      );
    }
  };
}

async function answer(
  parts: ServiceParts,
  hook: HookName,
  body: Json,
  withinMs: number,
): Promise<HookResponse> {
  switch (hook) {
    case 'Discovery':
      // Old entries are removed in the background, so that they do not delay the answer. Cluster API makes this call
      // every ten minutes.
      forgetUnasked({ ...parts, abort: AbortSignal.timeout(withinMs) }).catch((error: unknown) =>
        parts.log.warn('cannot read or write UpdaterSets', { reason: error }),
      );
      return discovery();
    case 'CanUpdateMachine':
      return await can(parts, hook, decode(hooks.canUpdateMachineRequest, body), withinMs);
    case 'CanUpdateMachineSet':
      return await can(parts, hook, decode(hooks.canUpdateMachineSetRequest, body), withinMs);
    case 'UpdateMachine': {
      const request = decode(hooks.updateMachineRequest, body);
      const work = async (abort: AbortSignal) =>
        await updateInSteps({ ...parts, abort }, request).catch(explained);
      const late = () => underWay('waiting for the API server or an updater: no answer in time');
      const answered = await within(parts.clock, withinMs, work, late);
      void parts.tell(request.desired.machine, updateNote(request, answered));
      return answered;
    }
  }
}

async function can(
  parts: ServiceParts,
  hook: CanHook,
  request: CanRequest,
  withinMs: number,
): Promise<HookResponse> {
  let isWait = false;
  const failed = (error: unknown) => {
    isWait = error instanceof OwnerWaits;
    return refusal(hook, messageOf(error));
  };
  const late = () => refusal(hook, 'an updater or an API server did not answer in time');
  const ownerWait = ownerWaits(parts);
  const wrong = settingsProblem(request.settings);
  const work = async (abort: AbortSignal): Promise<HookResponse> =>
    wrong === undefined
      ? await canUpdate({ ...parts, ownerWait, abort }, hook, request, withinMs).catch(failed)
      : refusal(hook, wrong);
  const answered = await within(parts.clock, withinMs, work, late);
  const { machine, machineSet } = request.current;
  const asked = machine ?? machineSet;
  if (asked) void parts.tell(asked, isWait ? waitNote(answered) : canNote(answered));
  return answered;
}

export async function within<T>(
  clock: Clock,
  ms: number,
  work: (abort: AbortSignal) => Promise<T>,
  late: () => T,
) {
  const time = new AbortController();
  const over = Promise.withResolvers<T>();
  const cancel = clock.schedule(ms, () => {
    over.resolve(late());
    time.abort(new Error('the time to answer is over'));
  });
  return await Promise.race([work(time.signal), over.promise]).finally(cancel);
}

/**
 * Matches the codes of problems that may disappear without a change, such as an unavailable server, a slow credential
 * plugin, or a checksum that is not published yet.
 */
const PASSING = /^REFIT_(UNREACHABLE|BAD_ANSWER|KUBECONFIG|TLS|FILE|INTERNAL)$/;

/**
 * Returns the answer for an error. If the problem may disappear, the answer is not a Failure: the Machine shows the
 * message, and the caller retries soon.
 */
function explained(thrown: unknown): UpdateMachineResponse {
  const { message, code } = describeProblem(thrown);
  return PASSING.test(code) ? underWay(message) : failure(message);
}

function decode<T>(schema: ZodType<T>, body: Json): T {
  const { data, error } = schema.safeParse(body);
  if (data !== undefined) return data;
  throw new Error(`invalid request: ${describeIssue(error)}`);
}

function refusal(hook: HookName, message: string): HookResponse {
  if (hook === 'UpdateMachine') return failure(message);
  return { apiVersion: hooks.HOOK_GROUP, kind: `${hook}Response`, status: 'Failure', message };
}
