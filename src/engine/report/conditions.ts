/** Writes the conditions of plans whose status has no field for them. These conditions are kept in an annotation. */
import { annotated, type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { ifUnchanged } from '../../kube/status-error.ts';
import { type Conditions, withCondition } from '../../runtime/conditions.ts';
import { defined } from '../../util/json.ts';
import { printable } from '../../util/printable.ts';
import type { PlanEnd } from '../assess/ended.ts';
import type { Effects } from '../execute/writes.ts';
import { holdingOf, SETTLE_MS, settledAfter } from '../explain/remarkable-waits.ts';
import type { Wait } from '../model/decision.ts';
import type { ReasonCode, ReportedEvent } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { runIdOn, withRunId } from '../model/runs.ts';
import { isOpenPlan } from '../model/shown-phases.ts';
import {
  CONDITIONS_ANNOTATION,
  conditionsIn,
  generationOfEnd,
  MESSAGE_ANNOTATION,
} from '../model/written-conditions.ts';

/** Milliseconds between two writes if only the text of a message has changed. */
const REFRESH_MS = 60_000;

/** A rollout with the phase and the reason that people see. */
export type ShownRollout = Pick<Rollout, 'source' | 'blocked' | 'id' | 'run'> &
  PlanEnd & {
    /**
     * `metadata.generation` of the spec that the conditions describe. For an ended rollout, this is the generation with
     * which it ended; otherwise it is the present generation.
     */
    readonly generation?: number | undefined;
  };

/**
 * Returns the conditions; returns the same list if nothing has changed. Progressing: the rollout runs. Blocked: a
 * target waits for something else than a slot or a stage. Degraded: a target has failed.
 */
export function conditionsOf(
  { phase, reason, source, generation }: Omit<ShownRollout, 'blocked' | 'id' | 'run'>,
  waits: readonly Wait[],
  known: Conditions,
  now: number,
): Conditions {
  const over = !isOpenPlan({ phase });
  // A rollout that is over has no waits any more.
  const wait = over ? undefined : holdingOf(waits, now);
  const truth = (is: boolean): 'True' | 'False' => (is ? 'True' : 'False');
  const name = `${source.kind} ${source.name}`;
  const isBad = reason !== undefined || (over && phase !== 'done');
  const ended = reason?.code ?? (phase === 'done' ? 'Completed' : 'TargetFailed');
  const message = over ? (reason?.message ?? `${name} is ${phase}`) : `the plan is ${phase}`;
  const described = defined({ observedGeneration: generation });
  const progress = { reason: over ? ended : 'InFlight', message };
  const unblocked = over ? OVER : FREE;
  const blocked = wait ? { reason: wait.reason.code, message: wait.reason.message } : unblocked;
  const degraded = isBad
    ? { reason: reason?.code ?? 'TargetFailed', message: reason?.message ?? phase }
    : WELL;
  return [
    { type: 'Progressing', status: truth(!over), ...progress },
    { type: 'Blocked', status: truth(wait !== undefined), ...blocked },
    { type: 'Degraded', status: truth(isBad), ...degraded },
  ].reduce<Conditions>(
    (list, condition) => withCondition(list, { ...condition, ...described }, now),
    known,
  );
}

/**
 * Returns one sentence for people about the plan: why it ended as it did, or else the first wait that is shown, with the
 * command that tells more. Undefined if there is nothing to say.
 */
function messageOf(
  { phase, reason }: ShownRollout,
  waits: readonly Wait[],
  now: number,
): string | undefined {
  const isOver = !isOpenPlan({ phase });
  const message = isOver ? reason?.message : (holdingOf(waits, now)?.reason ?? reason)?.message;
  return message && `${printable(message)} (refit why)`;
}

/**
 * Returns an Event for a wait that the record does not show, such as the wait of a target in progress; undefined if
 * there is no such wait. A slow drain gets no Event.
 */
export function blockedEvent(
  { blocked }: Pick<Rollout, 'blocked'>,
  waits: readonly Wait[],
  known: Conditions,
  now: number,
) {
  const reason = holdingOf(waits, now)?.reason;
  const before = known.find(({ type, status }) => type === 'Blocked' && status === 'True')?.reason;
  if (!reason || reason.code === 'Draining' || reason.code === before) return undefined;
  return blocked && before === undefined ? undefined : ({ type: 'Warning', reason } as const);
}

/** A wait counts only after SETTLE_MS, so the message must also be true while a shorter wait lasts. */
const FREE = {
  reason: 'NothingWaits',
  message:
    'no target has waited for ten seconds or longer for anything but a free slot or an earlier stage',
};
const OVER = { reason: FREE.reason, message: 'the plan has ended, so no target waits' };
const WELL = { reason: 'NothingFailed', message: 'no target has failed' };

/**
 * Writes the conditions and the id of the run if one of them has changed, and ignores a conflict. Resolves with the milliseconds after which
 * there may be more to write; undefined if nothing is expected.
 */
export async function writeConditions(
  writing: Writing,
  plan: KubeObject,
  rollout: ShownRollout,
  waits: readonly Wait[],
) {
  const { dialect, client, ownWrites, abort, onEvent, writtenAt, now } = writing;
  const known = conditionsIn(plan.metadata.annotations?.[CONDITIONS_ANNOTATION]);
  const isOver = !isOpenPlan(rollout);
  const { generation: present } = plan.metadata;
  const ofEnd = rollout.generation ?? generationOfEnd(plan) ?? present;
  const generation = isOver ? ofEnd : present;
  const conditions = conditionsOf({ ...rollout, generation }, waits, known, now);
  const laterMs = settledAfter(waits, now);
  const said = messageOf(rollout, waits, now);
  const isSaid =
    said === undefined || plan.metadata.annotations?.[MESSAGE_ANNOTATION] !== undefined;
  // A plan without an id is refused, so it has no run whose id could be recorded.
  const isNamed = rollout.phase !== 'new' && rollout.id !== '';
  const hasRunId = !isNamed || runIdOn(plan, rollout.run) === rollout.id;
  if (reasonsOf(conditions) === reasonsOf(known) && isSaid && hasRunId) {
    if (namesOf(conditions) === namesOf(known)) return laterMs;
    const age = now - (writtenAt.get(plan.metadata.name) ?? Number.NEGATIVE_INFINITY);
    if (age >= 0 && age < REFRESH_MS) return Math.min(laterMs ?? REFRESH_MS, REFRESH_MS - age);
  }
  const named = hasRunId ? plan : withRunId(plan, rollout);
  const changed = annotated(withoutAnnotations(named, MESSAGE_ANNOTATION), {
    [CONDITIONS_ANNOTATION]: JSON.stringify(conditions),
    ...(said === undefined ? {} : { [MESSAGE_ANNOTATION]: said }),
  });
  const written = await ifUnchanged(client.replace(dialect.plans, changed, { abort }));
  if (!written) return laterMs;
  ownWrites.remember(dialect.plans, written);
  writtenAt.set(plan.metadata.name, now);
  const event = blockedEvent(rollout, waits, known, now);
  if (event) onEvent(event);
  return laterMs;
}

/**
 * Writes the stalls to the status of the plan, and ignores a conflict. `since` maps the message of each stall to the
 * time at which the stall began, in milliseconds. Resolves with the milliseconds until another stall has lasted long
 * enough to be reported; undefined if there is no other stall.
 */
export async function writeStalls(
  effects: Effects,
  plan: KubeObject,
  since: ReadonlyMap<string, number>,
  now: number,
) {
  const { dialect, client, ownWrites, abort } = effects;
  const { stalls } = dialect.reporting ?? {};
  if (!stalls) return undefined;
  const lasting = new Map(
    [...since].map(([message, began]) => [message, now - began >= SETTLE_MS]),
  );
  const changed = stalls.record(plan, lasting, now);
  const options = { abort, subresource: 'status' };
  const written =
    changed === plan
      ? undefined
      : await ifUnchanged(client.replace(dialect.plans, changed, options));
  if (written) ownWrites.remember(dialect.plans, written);
  const left = [...since.values()].map((began) => began + SETTLE_MS - now).filter((ms) => ms > 0);
  return left.length > 0 ? Math.min(...left) : undefined;
}

interface Writing extends Pick<Effects, 'dialect' | 'client' | 'ownWrites' | 'abort'> {
  readonly onEvent: (event: ReportedEvent) => void;
  /** The time of the last write of conditions for each plan, in milliseconds. */
  readonly writtenAt: Map<string, number>;
  readonly now: number;
}

function reasonsOf(conditions: Conditions): string {
  return conditions
    .map(
      ({ type, status, reason, observedGeneration }) =>
        `${type}=${status} ${reason} ${observedGeneration}`,
    )
    .join();
}

/** Returns the messages of the conditions without counts and durations, which change all the time. Digits in names stay. */
function namesOf(conditions: Conditions): string {
  return conditions
    .map(({ message = '' }) => message.replaceAll(/(?<![\w.-])\d[\dhms]*(?![\w.-])/g, '#'))
    .join();
}

/**
 * Returns the message that the leader wrote about a wait with this reason. Read-only commands use this message for
 * waits that only the leader can observe.
 */
export function blockedBy({ metadata }: KubeObject, code: ReasonCode): string | undefined {
  const conditions = conditionsIn(metadata.annotations?.[CONDITIONS_ANNOTATION]);
  return conditions.find(({ status, reason }) => status === 'True' && reason === code)?.message;
}
