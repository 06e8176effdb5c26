/** Owns the conditions of plans whose own status has no room for them: they stand in an annotation of ours. */
import type { KubeClient } from '../../kube/client.ts';
import type { Resource } from '../../kube/resources.ts';
import { isConflict, isNotFound } from '../../kube/status-error.ts';
import type { Condition, KubeObject } from '../../kube/types.ts';
import { withCondition } from '../../runtime/conditions.ts';
import type { Wait } from '../model/decided.ts';
import { isUnasked } from '../model/reasons.ts';
import type { Rollout } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';
import type { OwnWrites } from '../observe/own-writes.ts';
import type { Announcement } from './plan-events.ts';

/** JSON: a list as in `status.conditions` of other kinds. */
export const CONDITIONS_ANNOTATION = 'upgrade.refit.dev/conditions';

/** Milliseconds that something must hold targets back before it is told: most of it passes, and each word is a write. */
const SETTLE_MS = 10_000;

/** Words of the ordinary course of things, which are no reason to look. */
const ORDINARY = new Set(['slots', 'stages', 'working', 'intended', 'signalled', 'verifying']);

/**
 * Progressing: it is carried out · Blocked: something beside the slots holds targets back · Degraded: a target failed or
 * the plan was refused. The list that was there is returned where nothing changed.
 */
export function conditionsOf(
  rollout: Rollout,
  waits: readonly Wait[],
  known: readonly Condition[],
  now: number,
): readonly Condition[] {
  const { phase, reason, source } = rollout;
  const over = isFinal(rollout);
  const wait = holdingOf(waits, now);
  const truth = (is: boolean): 'True' | 'False' => (is ? 'True' : 'False');
  const name = `${source.kind} ${source.name}`;
  const isBad = reason !== undefined || (over && phase !== 'done');
  const ended = phase === 'done' ? 'Completed' : (reason?.code ?? 'TargetFailed');
  const progress = over ? { reason: ended, message: reason?.message ?? `${name} is ${phase}` } : RUNNING;
  const blocked = wait ? { reason: wait.reason.code, message: wait.reason.message } : FREE;
  const degraded = isBad ? { reason: reason?.code ?? 'TargetFailed', message: reason?.message ?? phase } : WELL;
  return [
    { type: 'Progressing', status: truth(!over), ...progress },
    { type: 'Blocked', status: truth(wait !== undefined), ...blocked },
    { type: 'Degraded', status: truth(isBad), ...degraded },
  ].reduce<readonly Condition[]>((list, condition) => withCondition(list, condition, now), known);
}

function holdingOf(waits: readonly Wait[], now: number): Wait | undefined {
  return waits.find((each) => isRemarkable(each) && now - Date.parse(each.since) >= SETTLE_MS);
}

/**
 * What holds it back now and no record tells of: it holds back a target that is under way already, or came in place of
 * something else. That pods take their time is no news.
 */
export function newsOf(
  { blocked }: Rollout,
  waits: readonly Wait[],
  known: readonly Condition[],
  now: number,
): Announcement | undefined {
  const reason = holdingOf(waits, now)?.reason;
  const before = known.find(({ type, status }) => type === 'Blocked' && status === 'True')?.reason;
  if (!reason || reason.code === 'Draining' || reason.code === before) return undefined;
  return blocked && before === undefined ? undefined : { type: 'Warning', reason };
}

function isRemarkable({ gate, reason }: Wait): boolean {
  return !ORDINARY.has(gate) && !isUnasked(reason);
}

const RUNNING = { reason: 'InFlight', message: 'it is carried out' };
const FREE = { reason: 'NothingWaits', message: 'nothing but slots and stages holds targets back' };
const WELL = { reason: 'NothingFailed', message: 'no target has failed' };

/**
 * Writes them where their words changed; whoever came before is seen by the watch, and all is decided again then. Returns
 * the milliseconds after which something that is new has lasted long enough to be told.
 */
export async function tellConditions<P extends KubeObject>(
  { client, ownWrites, plans, abort, tell }: Writing<P>,
  plan: P,
  rollout: Rollout,
  waits: readonly Wait[],
  now: number,
): Promise<number | undefined> {
  const known = conditionsIn(plan.metadata.annotations?.[CONDITIONS_ANNOTATION]);
  const conditions = conditionsOf(rollout, waits, known, now);
  const fresh = waits.filter(isRemarkable).map(({ since }) => Date.parse(since) + SETTLE_MS - now);
  const soonest = Math.min(...fresh.filter((ms) => ms > 0));
  const laterMs = Number.isFinite(soonest) ? soonest : undefined;
  if (wordsOf(conditions) === wordsOf(known)) return laterMs;
  const annotations = { ...plan.metadata.annotations, [CONDITIONS_ANNOTATION]: JSON.stringify(conditions) };
  const told = { ...plan, metadata: { ...plan.metadata, annotations } };
  try {
    ownWrites.remember(plans, await client.replace(plans, told, { abort }));
    const news = newsOf(rollout, waits, known, now);
    if (news) tell(news);
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
  return laterMs;
}

interface Writing<P extends KubeObject> {
  readonly client: KubeClient;
  readonly ownWrites: OwnWrites;
  readonly plans: Resource<P>;
  readonly abort?: AbortSignal | undefined;
  /** Hears what is worth an event. */
  readonly tell: (news: Announcement) => void;
}

/** Messages hold counts and names that change all the time: only another reason is worth a write. */
function wordsOf(conditions: readonly Condition[]): string {
  return conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`).join();
}

/** Anybody may have written it: what is no list of conditions is written anew, as if it were not there. */
export function conditionsIn(text = '[]'): readonly Condition[] {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every(isCondition) ? list : [];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

function isCondition(entry: unknown): entry is Condition {
  if (typeof entry !== 'object' || entry === null) return false;
  const { type, status, ...texts } = entry as Partial<Record<keyof Condition, unknown>>;
  const { reason, message, lastTransitionTime } = texts;
  const areTexts = [reason, message, lastTransitionTime].every(
    (each) => each === undefined || typeof each === 'string',
  );
  return typeof type === 'string' && typeof status === 'string' && areTexts;
}
