/** Checks whether the target version still has the flags and feature gates that the cluster sets. */
import { counted, listed } from '../../util/phrases.ts';
import { parseVersion } from '../../util/version.ts';
import {
  factsOf,
  NEWEST_KNOWN,
  nearestFactsOf,
  OLDEST_KNOWN,
  OLDEST_MAINTAINED,
} from '../../versions/facts.ts';
import { isKnown } from '../../versions/removed-settings.ts';
import { faultOf, nameOf } from '../../versions/settings.ts';
import type { Check, PlacedSetting } from '../context.ts';
import { type FoundBy, grouped } from '../finding.ts';

const CURE = 'remove it before the upgrade';

export const checkSettings: Check = async ({ to, dialects, ...asking }) => {
  const all = await Promise.all(dialects.map(async (each) => await each.settings(asking)));
  const settings = all.flatMap((each) => each.settings);
  const places = all.flatMap((each) => each.places);
  const unread = all.flatMap((each) => each.unread);
  const faults = grouped(settings.flatMap((setting) => judged(setting, to)));
  const boundary = boundaryOf(to);
  if (faults.length + unread.length > 0 || boundary !== undefined)
    return [...faults, ...unread, ...(boundary === undefined ? [] : [boundary])];
  if (places.length === 0)
    return [
      { state: 'unknown', message: 'Refit found no place where flags and feature gates are set' },
    ];
  const message = `${counted(settings.length, 'setting')} in ${listed(places)} are valid in ${to}`;
  return [{ state: 'ok', message }];
};

function judged(setting: PlacedSetting, to: string): FoundBy[] {
  const { object, component } = setting;
  const fault = faultOf(setting, to);
  if (fault !== undefined) {
    if (fault.cleanedIn === setting.place) return [];
    const message = `${nameOf(setting)}: ${fault.why}`;
    return [{ state: fault.isCertain ? 'blocker' : 'warning', object, message, cure: CURE }];
  }
  if (isKnown(setting, to)) return [];
  return [
    {
      state: 'unknown',
      object,
      message: `${nameOf(setting)}: no ${component} from 1.${OLDEST_KNOWN} to 1.${NEWEST_KNOWN} has it`,
      cure: 'check whether the new version still accepts it',
    },
  ];
}

/** Returns what to do about a version whose rules this Refit does not know, because it is newer or older than all known ones. */
export function cureForUnknown(to: string): string {
  const { major = 0, minor = 0 } = parseVersion(to) ?? {};
  const isOld = major < 1 || (major === 1 && minor < OLDEST_KNOWN);
  return isOld
    ? `read the changelog of that version: Kubernetes maintains 1.${OLDEST_MAINTAINED} and later`
    : 'use a newer Refit, and read the changelog of the new version';
}

/** Returns a finding if the sources of the target version were not read; undefined if they were. */
function boundaryOf(to: string): FoundBy | undefined {
  if (factsOf(to) !== undefined) return undefined;
  const judgedBy =
    nearestFactsOf(to) !== undefined
      ? `they are judged as for 1.${NEWEST_KNOWN}`
      : 'they are not judged';
  return {
    state: 'unknown',
    message: `this Refit knows the flags and feature gates of 1.${OLDEST_KNOWN} to 1.${NEWEST_KNOWN}, and not those of ${to}, so ${judgedBy}`,
    cure: cureForUnknown(to),
  };
}
