/** What people ask for while a plan runs (pause, abort, retry): annotations of ours on the plan. */
import { type KubeObject, withoutAnnotations } from '../../kube/resources.ts';
import { ownMember } from '../../util/own-member.ts';
import { because, type Reason } from './reasons.ts';

export const COMMON_PREFIX = 'upgrade.refit.dev/';
/** Holds the time of the pause, RFC 3339. Any value but `false` pauses. */
export const PAUSE_ANNOTATION = `${COMMON_PREFIX}pause`;
/** Holds the reason, in the user's words. */
export const ABORT_ANNOTATION = `${COMMON_PREFIX}abort`;
/** `<target>@<RFC 3339>`, separated by commas: retries a failure from before that time. */
export const RETRY_ANNOTATION = `${COMMON_PREFIX}retry`;

export interface Controls {
  readonly paused: boolean;
  /** RFC 3339; undefined if the annotation holds no time. */
  readonly pausedSince?: string | undefined;
  readonly abort?: string | undefined;
  /** By name of the target: milliseconds since the Unix epoch. */
  readonly retries: ReadonlyMap<string, number>;
}

export const NO_CONTROLS: Controls = { paused: false, retries: new Map() };

export function controlKey(annotation: string, prefix = COMMON_PREFIX): string {
  return annotation.replace(COMMON_PREFIX, prefix);
}

/** An unreadable control counts as absent, but an unreadable pause still pauses. A deletion aborts, also while a finalizer delays it. */
export function controlsOn({ metadata }: KubeObject, prefix?: string): Controls {
  const { annotations = {}, deletionTimestamp } = metadata;
  const valueOf = (key: string): string | undefined =>
    ownMember(annotations, controlKey(key, prefix)) ?? ownMember(annotations, key);
  const pause = valueOf(PAUSE_ANNOTATION);
  const abort = valueOf(ABORT_ANNOTATION);
  const retry = valueOf(RETRY_ANNOTATION);
  const reason = deletionTimestamp === undefined ? 'no reason was given' : 'it is being deleted';
  // `Date.parse` also accepts words and numbers.
  const isMoment = /^\d{4}-\d\d-\d\dT/.test(pause ?? '') && !Number.isNaN(Date.parse(pause ?? ''));
  return {
    paused: pause !== undefined && pause !== 'false',
    pausedSince: isMoment ? pause : undefined,
    ...((abort ?? deletionTimestamp) === undefined ? {} : { abort: abort || reason }),
    retries: retriesIn(retry ?? ''),
  };
}

export function abortReason(words: string): Reason {
  return because('Aborted', `the plan was aborted: ${words}`);
}

/** For a new plan made from an old one. A pause holds until `refit resume`. */
export function withoutControls<T extends KubeObject>(object: T): T {
  return withoutAnnotations(object, ABORT_ANNOTATION, RETRY_ANNOTATION);
}

/** The annotation with one more retry; it replaces an earlier one of the same target. */
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
