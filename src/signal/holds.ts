/**
 * Reads and writes holds. A hold is an annotation on a Node, ControlNode or Machine that keeps plans of every dialect from starting
 * on it. Work in progress finishes.
 */
import type { KubeObject } from '../kube/resources.ts';
import { defined, isRecord, parseJson } from '../util/json.ts';
import { onceForEach } from '../util/memo.ts';
import { ownMember } from '../util/own-member.ts';
import { momentIn, textIn } from '../util/written-values.ts';

/**
 * The annotation that holds an object. Its value is a JSON object with `reason`, `by`, `since` and `until`, or any other
 * text, which then is the reason. People write the annotation, so all members are optional, and nothing verifies the name
 * in `by`.
 */
export const HOLD_ANNOTATION = 'upgrade.refit.dev/hold';

export interface Hold {
  readonly reason?: string;
  readonly by?: string;
  /** The time of the hold in RFC 3339. */
  readonly since?: string;
  /** The time at which the hold ends by itself, in RFC 3339; undefined if only `refit unhold` ends it. */
  readonly until?: string;
}

/**
 * Returns the hold of the object, even if the hold has ended; undefined if there is none. A hold whose end cannot be
 * read has no end, so that no node starts by mistake.
 */
export const holdOn = onceForEach(({ metadata: { annotations = {} } }: KubeObject) => {
  const value = ownMember(annotations, HOLD_ANNOTATION);
  if (value === undefined || value === 'false') return undefined;
  const json = parseJson(value);
  if (!isRecord(json)) return defined({ reason: textIn(value) }) as Hold;
  return defined({
    reason: textIn(ownMember(json, 'reason')),
    by: textIn(ownMember(json, 'by')),
    since: momentIn(ownMember(json, 'since')),
    until: momentIn(ownMember(json, 'until')),
  }) as Hold;
});

/** Returns the value of the annotation. */
export function writeHold(hold: Hold): string {
  return JSON.stringify(defined(hold));
}

/** Returns the hold that ends last; undefined if there is none. A hold without an end never ends. */
export function longestHold(holds: readonly (Hold | undefined)[]): Hold | undefined {
  const endOf = ({ until }: Hold): number =>
    until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
  const given = holds.filter((hold) => hold !== undefined);
  return given.reduce<Hold | undefined>(
    (longest, hold) => (longest && endOf(longest) >= endOf(hold) ? longest : hold),
    undefined,
  );
}

/**
 * Returns true if the hold keeps plans from starting at `now`, which is in milliseconds. A hold without an end always
 * keeps them from starting.
 */
export function isHeld({ until }: Hold, now: number): boolean {
  return until === undefined || now < Date.parse(until);
}
