/**
 * Reads and writes what people ask for while a plan runs (pause, abort, retry, an opening of the window). These requests are annotations on
 * the plan.
 */
import { type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { momentIn, textIn } from '../../util/written-values.ts';
import { because, type Reason } from './reasons.ts';

export const COMMON_PREFIX = 'upgrade.refit.dev/';
/**
 * The annotation that pauses a plan. Its value is the time of the pause in RFC 3339, and after a space the reason, in the
 * user's words; either may be missing. Every value except `false` pauses the plan.
 */
export const PAUSE_ANNOTATION = `${COMMON_PREFIX}pause`;
/** The annotation that aborts a plan. Its value is the reason, in the user's words. */
export const ABORT_ANNOTATION = `${COMMON_PREFIX}abort`;
/**
 * The annotation that retries targets. Its value is a list of `<target>@<RFC 3339>`, separated by commas. An entry
 * retries the target if it failed before that time.
 */
export const RETRY_ANNOTATION = `${COMMON_PREFIX}retry`;
/** The annotation that runs the hooks of the whole plan again. Its value is the time of the request in RFC 3339. */
export const RETRY_HOOKS_ANNOTATION = `${COMMON_PREFIX}retry-hooks`;
/**
 * The annotation in which the leader counts the attempts that it ordered by itself. Its value is a JSON object. `run`
 * is the run whose attempts are counted, and `attempts` has the number of the last attempt for each key of a target.
 */
export const ATTEMPTS_ANNOTATION = `${COMMON_PREFIX}attempts`;
/**
 * The annotation that opens the maintenance window once. Its value is a JSON object with `until`, `since`, `by` and
 * `reason`, and with `blackouts: true` if the opening also applies during blackouts. If `until` is missing or cannot be
 * read, the annotation opens nothing.
 */
export const OPEN_WINDOW_ANNOTATION = `${COMMON_PREFIX}open-window`;

/** One opening of the maintenance window by a person. It ends by itself. */
export interface OpenWindow {
  /** The end in RFC 3339. This time itself is no longer part of the opening. */
  readonly until: string;
  readonly since?: string | undefined;
  /** The name of the person, as that person wrote it. */
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  /** True if targets also start during a blackout. */
  readonly blackouts?: true | undefined;
}

export interface Controls {
  readonly paused: boolean;
  /** The time of the pause in RFC 3339; undefined if the annotation holds no time. */
  readonly pausedSince?: string | undefined;
  /** Why somebody paused the plan, in the user's words. */
  readonly pauseReason?: string | undefined;
  readonly abort?: string | undefined;
  readonly openWindow?: OpenWindow | undefined;
  /** For each name of a target, the time at which somebody asked to retry it, in milliseconds since the Unix epoch. */
  readonly retries: ReadonlyMap<string, number>;
  readonly attempts?: CountedAttempts | undefined;
  /**
   * The time at which somebody last asked to run the hooks of the whole plan again, in RFC 3339. This time names the
   * attempt of the hooks.
   */
  readonly hooksRetried?: string | undefined;
}

/** The attempts that the leader has counted for one run. */
export interface CountedAttempts {
  readonly run: string;
  readonly counts: Readonly<Record<string, number>>;
}

export const NO_CONTROLS: Controls = { paused: false, retries: new Map() };

/** Returns the key of a control annotation with the prefix that a dialect uses for its plans. */
export function controlKey(annotation: string, prefix = COMMON_PREFIX): string {
  return annotation.replace(COMMON_PREFIX, prefix);
}

/**
 * Returns the controls of a plan. A control whose value cannot be read counts as absent, except a pause, which counts with any value. A
 * plan that is being deleted counts as aborted, also while a finalizer delays the deletion.
 */
export function controlsOn({ metadata }: KubeObject, prefix?: string): Controls {
  const { annotations = {}, deletionTimestamp } = metadata;
  const valueOf = (key: string): string | undefined =>
    ownMember(annotations, controlKey(key, prefix)) ?? ownMember(annotations, key);
  const pause = valueOf(PAUSE_ANNOTATION);
  const abort = valueOf(ABORT_ANNOTATION);
  const retry = valueOf(RETRY_ANNOTATION);
  const reason = deletionTimestamp === undefined ? 'no reason was given' : 'it is being deleted';
  const attempts = attemptsIn(valueOf(ATTEMPTS_ANNOTATION));
  const hooksRetried = momentIn(valueOf(RETRY_HOOKS_ANNOTATION));
  const openWindow = openWindowIn(valueOf(OPEN_WINDOW_ANNOTATION) ?? '');
  return {
    paused: pause !== undefined && pause !== 'false',
    ...pauseIn(pause),
    ...(openWindow === undefined ? {} : { openWindow }),
    ...((abort ?? deletionTimestamp) === undefined ? {} : { abort: abort || reason }),
    retries: retriesIn(retry ?? ''),
    ...(attempts === undefined ? {} : { attempts }),
    ...(hooksRetried === undefined ? {} : { hooksRetried }),
  };
}

/** Returns the value of the annotation that pauses a plan. */
export function pauseText(since: string, reason: string | undefined): string {
  return reason === undefined ? since : `${since} ${reason}`;
}

function pauseIn(text: string | undefined): Pick<Controls, 'pausedSince' | 'pauseReason'> {
  const [first = ''] = (text ?? '').split(/\s/, 1);
  const rest = (text ?? '').slice(first.length).trim();
  const pausedSince = momentIn(first);
  // Without a time, the value may be words, or a sign such as `true` or `1`.
  const words = pausedSince === undefined && rest !== '' ? text : rest;
  const pauseReason = textIn(words);
  return { pausedSince, ...(pauseReason !== undefined && { pauseReason }) };
}

/**
 * Returns the opening that applies at `now`, in milliseconds since the Unix epoch; undefined if there is no opening or
 * the opening is over.
 */
export function openingAt({ openWindow }: Controls, now: number): OpenWindow | undefined {
  return openWindow !== undefined && now < Date.parse(openWindow.until) ? openWindow : undefined;
}

/** Returns the reason for the end of an aborted plan. `words` is what the user wrote into the annotation. */
export function abortReason(words: string): Reason {
  return because('Aborted', `the plan was aborted: ${words}`);
}

/**
 * Returns the object without the annotations for abort, retry and the opened window, for a new plan that is made from
 * an old plan. A pause stays until `refit resume`.
 */
export function withoutControls<T extends KubeObject>(object: T): T {
  return withoutAnnotations(
    object,
    ABORT_ANNOTATION,
    RETRY_ANNOTATION,
    RETRY_HOOKS_ANNOTATION,
    ATTEMPTS_ANNOTATION,
    OPEN_WINDOW_ANNOTATION,
  );
}

/** Returns the value of the annotation with one more retry, which replaces an earlier retry of the same target. */
export function withRetry(text: string | undefined, target: string, at: string): string {
  const others = (text ?? '')
    .split(',')
    .filter((entry) => entry !== '' && !entry.startsWith(`${target}@`));
  return [...others, `${target}@${at}`].join(',');
}

function retriesIn(text: string): Map<string, number> {
  return new Map(
    text.split(',').flatMap((entry) => {
      const [target, at = ''] = entry.trim().split('@');
      const ms = Date.parse(at);
      return target && !Number.isNaN(ms) ? [[target, ms] as const] : [];
    }),
  );
}

/**
 * Returns the counts in the text of the annotation; undefined if the text has no counts. A number that cannot be read
 * counts as the highest possible number, so that it causes no further attempt.
 */
function attemptsIn(text: string | undefined): CountedAttempts | undefined {
  const json = parseJson(text);
  if (!isRecord(json)) return undefined;
  const run = textIn(ownMember(json, 'run'));
  const found = ownMember(json, 'attempts');
  if (run === undefined || !isRecord(found)) return undefined;
  const numberIn = (value: unknown): number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value > 0
      ? value
      : Number.MAX_SAFE_INTEGER;
  const counts = Object.entries(found).map(([key, value]) => [key, numberIn(value)] as const);
  return { run, counts: Object.fromEntries(counts) };
}

function openWindowIn(text: string): OpenWindow | undefined {
  const json = parseJson(text);
  if (!isRecord(json)) return undefined;
  const until = momentIn(ownMember(json, 'until'));
  if (until === undefined) return undefined;
  return {
    until,
    since: momentIn(ownMember(json, 'since')),
    by: textIn(ownMember(json, 'by')),
    reason: textIn(ownMember(json, 'reason')),
    blackouts: ownMember(json, 'blackouts') === true ? true : undefined,
  };
}
