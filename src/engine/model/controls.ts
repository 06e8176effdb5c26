/** Owns what people order while a plan runs: annotations of ours on the plan, whatever wrote it. */
import type { KubeObject } from '../../kube/types.ts';
import { because, type Reason } from './reasons.ts';

/** Holds the moment of the order, RFC 3339, where that is known; whatever it holds pauses, but for `false`. */
export const PAUSE_ANNOTATION = 'upgrade.refit.dev/pause';
/** Holds the words of whoever ordered it. */
export const ABORT_ANNOTATION = 'upgrade.refit.dev/abort';
/** `<target>@<RFC 3339>`, separated by commas: a failure from before that moment is forgotten, a later one is not. */
export const RETRY_ANNOTATION = 'upgrade.refit.dev/retry';

export interface Controls {
  readonly paused: boolean;
  /** RFC 3339; undefined where whoever paused it wrote something else. */
  readonly pausedSince?: string | undefined;
  /** Why it is to end, in somebody's words. */
  readonly abort?: string | undefined;
  /** By name of the target: milliseconds since the Unix epoch. */
  readonly retries: ReadonlyMap<string, number>;
}

export const NO_CONTROLS: Controls = { paused: false, retries: new Map() };

/** What cannot be read is as good as absent, but for a pause: whoever writes anything there wants it to stop. */
export function controlsOn({ metadata: { annotations = {} } }: KubeObject): Controls {
  const { [PAUSE_ANNOTATION]: pause, [ABORT_ANNOTATION]: abort, [RETRY_ANNOTATION]: retry } = annotations;
  return {
    paused: pause !== undefined && pause !== 'false',
    pausedSince: isMoment(pause) ? pause : undefined,
    ...(abort === undefined ? {} : { abort: abort || 'no reason was given' }),
    retries: retriesIn(retry ?? ''),
  };
}

/** Words and numbers pass for dates elsewhere. */
function isMoment(text = ''): boolean {
  return /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text));
}

/** Why a rollout ends that somebody aborted with these words: the same wherever it is told. */
export function abortReason(words: string): Reason {
  return because('Aborted', `stopped by order: ${words}`);
}

/** The object without any: whoever makes a plan of it anew starts without what was ordered of the last one. */
export function withoutControls<T extends KubeObject>(object: T): T {
  const {
    [PAUSE_ANNOTATION]: _p,
    [ABORT_ANNOTATION]: _a,
    [RETRY_ANNOTATION]: _r,
    ...annotations
  } = object.metadata.annotations ?? {};
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** The text with one retry more; earlier ones of the same target are replaced. */
export function withRetry(text: string | undefined, target: string, at: string): string {
  const others = (text ?? '').split(',').filter((entry) => entry !== '' && !entry.startsWith(`${target}@`));
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
