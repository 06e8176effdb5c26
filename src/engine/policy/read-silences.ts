/** Reads `spec.silences` of an UpgradePolicy. */
import { tellsNode, WANTED_NODE } from '../../api/refit/silence-rules.ts';
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { NODE, type SilenceRule } from '../../silences/silence.ts';
import { parseDuration } from '../../util/duration.ts';
import { defined } from '../../util/json.ts';

type SilencesSpec = NonNullable<UpgradePolicySpec['silences']>;

const DEFAULT_MATCHERS = [{ name: 'node', value: NODE, isRegex: false }];
const DEFAULT_MS = 5 * 60_000;
const LEAST_MS = 60_000;
const MOST_MS = 3_600_000;

/**
 * Returns the silences, without those that could match alerts about other nodes. Calls `complain` for each silence that is left out, for
 * each name that two silences have, and for each wrong duration.
 */
export function silencesIn(
  spec: SilencesSpec,
  complain: (field: string, wanted: string, found: unknown) => void,
): SilenceRule[] {
  const names = new Set<string>();
  return spec.flatMap((each, index): SilenceRule[] => {
    const at = `silences[${index}]`;
    const { name, url, secretName, duration, matchers: given = DEFAULT_MATCHERS } = each;
    if (names.has(name)) complain(`${at}.name`, 'a name that no other silence has', name);
    names.add(name);
    const lastsMs = duration === undefined ? DEFAULT_MS : (parseDuration(duration) ?? 0);
    const isInTime = lastsMs >= LEAST_MS && lastsMs <= MOST_MS;
    if (!isInTime) complain(`${at}.duration`, 'a time from 1m to 1h, such as 5m', duration);
    const matchers = given.map(({ isRegex = false, ...matcher }) => ({ ...matcher, isRegex }));
    const isBounded = matchers.some(({ value, isRegex }) => tellsNode(value, isRegex));
    if (!isBounded) complain(`${at}.matchers`, `a list in which ${WANTED_NODE}`, given);
    return isBounded && isInTime
      ? [{ name, url, matchers, lastsMs, ...defined({ secretName }) }]
      : [];
  });
}
