/** Defines the silences of policies, and computes the silence that Alertmanager must have. All functions are pure. */
import { isRecord, sameJson } from '../util/json.ts';

export interface AlertMatcher {
  /** The name of the label. */
  readonly name: string;
  readonly value: string;
  readonly isRegex: boolean;
}

/** One silence of a policy. In its matchers, `{node}` is replaced by the name of a Node. */
export interface SilenceRule {
  readonly name: string;
  /** The address of Alertmanager. */
  readonly url: string;
  readonly secretName?: string | undefined;
  readonly matchers: readonly AlertMatcher[];
  /** Milliseconds from a renewal to the end of the silence. */
  readonly lastsMs: number;
}

/** What the comment of a silence says about its plan. */
export interface SilencedPlan {
  /** The title of the plan. */
  readonly plan: string;
  /** The UID of the plan. */
  readonly uid: string;
  /** True if the plan rolls an earlier run back. */
  readonly rollsBack?: boolean;
}

/** The silence that one Node needs for one plan. */
export interface Wanted {
  readonly rule: SilenceRule;
  /** The name of the Node. */
  readonly node: string;
  readonly matchers: readonly AlertMatcher[];
  /**
   * Describes the purpose of the silence. The text is the same for every leader, so that the next leader finds the
   * silence.
   */
  readonly comment: string;
}

/** A silence in the form that Alertmanager accepts in a request. With `id`, it replaces the silence with that id. */
export interface Posted {
  readonly id?: string;
  readonly matchers: readonly unknown[];
  readonly startsAt: string;
  readonly endsAt: string;
  readonly createdBy: string;
  readonly comment: string;
}

/** A silence in Alertmanager that a leader has made and that has not ended. */
export interface Found {
  readonly id: string;
  /** The matchers as Alertmanager returns them. */
  readonly matchers: readonly unknown[];
  readonly startsAt: string;
  readonly endsAt: string;
}

/** A silence that Alertmanager has. It starts at `startsAt`, and ends at `endsAt` unless it is renewed. */
export type Made = Pick<Found, 'id' | 'startsAt' | 'endsAt'>;

export const NODE = '{node}';
export const CREATOR = 'refit';

/** A silence is renewed once less than this share of its time is left. So there is time to repeat a renewal that failed. */
const RENEW_BELOW = 2 / 3;

/**
 * Returns the silence of this rule for a Node. `plan` is the title of the plan. `uid` distinguishes it from a plan with the same title in
 * another cluster. `rollsBack` says whether the plan takes its nodes back to the version of an earlier run.
 */
export function wantedFor(
  rule: SilenceRule,
  { plan, uid, rollsBack = false }: SilencedPlan,
  node: string,
): Wanted {
  const matchers = rule.matchers.map(({ name, value, isRegex }) => ({
    name,
    value: value.replaceAll(NODE, isRegex ? node.replaceAll('.', String.raw`\.`) : node),
    isRegex,
  }));
  const work = rollsBack ? `rolls node ${node} back` : `upgrades node ${node}`;
  const comment = `Refit ${work}: plan ${plan} (${uid}), silence ${rule.name}`;
  return { rule, node, matchers, comment };
}

/** Returns the filters with which Alertmanager lists the silences that have these matchers. */
export function filtersOf({ matchers }: Wanted): string[] {
  return matchers.map(
    ({ name, value, isRegex }) => `${name}${isRegex ? '=~' : '='}${JSON.stringify(value)}`,
  );
}

/** Returns the listed silences that a leader has made for the same purpose and that have not ended. */
export function ownAmong(listed: readonly unknown[], wanted: Wanted): Found[] {
  return listed.flatMap((each): Found[] => {
    if (!isRecord(each) || each['createdBy'] !== CREATOR || each['comment'] !== wanted.comment)
      return [];
    const { id, matchers, startsAt, endsAt, status } = each;
    const isOver = isRecord(status) && status['state'] === 'expired';
    if (isOver || !Array.isArray(matchers) || !hasSame(matchers, wanted.matchers)) return [];
    if (typeof id !== 'string' || typeof startsAt !== 'string' || typeof endsAt !== 'string')
      return [];
    return [{ id, matchers, startsAt, endsAt }];
  });
}

/** Returns the silence that ends last; undefined if there is none. */
export function lastOf(found: readonly Found[]): Found | undefined {
  return found.toSorted((a, b) => Date.parse(b.endsAt) - Date.parse(a.endsAt))[0];
}

/** Returns the host and port of the Alertmanager of this rule. Messages and metrics name it, because an address may contain secrets. */
export function serverOf({ url }: Pick<SilenceRule, 'url'>): string {
  return URL.parse(url)?.host ?? '';
}

/** Returns the silence that must be posted now; undefined if an existing silence lasts long enough. */
export function renewalOf(
  { rule, matchers, comment }: Wanted,
  found: readonly Found[],
  now: number,
): Posted | undefined {
  const latest = lastOf(found);
  const endsAt = new Date(now + rule.lastsMs).toISOString();
  if (latest === undefined) {
    const startsAt = new Date(now).toISOString();
    const asked = matchers.map((matcher) => ({ ...matcher, isEqual: true }));
    return { matchers: asked, startsAt, endsAt, createdBy: CREATOR, comment };
  }
  const leftMs = Date.parse(latest.endsAt) - now;
  // A silence lasts too long if its leader had a clock that was ahead, or if the policy was changed later.
  if (leftMs >= rule.lastsMs * RENEW_BELOW && leftMs <= rule.lastsMs) return undefined;
  // Alertmanager keeps the silence and its id only if matchers and start stay as they are.
  return { ...latest, endsAt, createdBy: CREATOR, comment };
}

/** Returns the milliseconds until the silence must be checked again. */
export function nextLookMs({ lastsMs }: SilenceRule): number {
  return lastsMs / 3;
}

function hasSame(listed: readonly unknown[], wanted: readonly AlertMatcher[]): boolean {
  const shown = listed.map((each) =>
    isRecord(each) && each['isEqual'] !== false
      ? [each['name'], each['value'], each['isRegex']]
      : [],
  );
  return (
    listed.length === wanted.length &&
    wanted.every(({ name, value, isRegex }) =>
      shown.some((each) => sameJson(each, [name, value, isRegex])),
    )
  );
}
