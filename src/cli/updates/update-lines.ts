/**
 * Writes the text form of `refit updates`: a table, then for each UpdateConfig its message and the times of its next
 * check and its next window.
 */
import type { UpdateConfig } from '../../api/autopilot/update-config.ts';
import { TIME_ZONE_ANNOTATION } from '../../updates/config/read-config.ts';
import { statusOf } from '../../updates/status.ts';
import { formatDuration } from '../../util/duration.ts';
import { isTimeZone, timeWithZone } from '../../util/maintenance-windows.ts';
import { age, table, wrapped } from '../phrases.ts';

const HEADER = [
  'NAME',
  'CHANNEL',
  'CURRENT',
  'AVAILABLE',
  'STATE',
  'CHECKED',
  'NEXT CHECK',
  'WINDOW',
];

/** Returns the lines of the output. `now` is in milliseconds since the Unix epoch, `width` in characters. */
export function updateLines(
  configs: readonly UpdateConfig[],
  now: number,
  width: number,
): readonly string[] {
  const rows = configs.map((config) => {
    const { current, available, reason, checkedAt, nextCheck, nextWindow } = statusOf(config) ?? {};
    return [
      config.metadata.name,
      config.spec.channel ?? 'stable',
      current ?? '',
      available ?? '',
      reason ?? 'NotChecked',
      checkedAt === undefined ? 'never' : `${age(checkedAt, now)} ago`,
      ahead(nextCheck, now),
      ahead(nextWindow, now),
    ];
  });
  const notes = configs.flatMap((config) => [messageOf(config), ...timesOf(config, now)]);
  const zones = new Set(configs.map(zoneOf));
  const common = zones.size === 1 ? [...zones][0] : undefined;
  return [
    ...table(HEADER, rows, width),
    '',
    ...notes.flatMap((line) => wrapped(line, width)),
    '',
    ...wrapped(`Times as of ${timeWithZone(now, common)}.`, width),
  ];
}

function messageOf(config: UpdateConfig): string {
  const { message = 'no leader has checked it yet' } = statusOf(config) ?? {};
  return `${config.metadata.name}: ${message}`;
}

/** Returns a line with the times that are in the future, in UTC and in the time zone of the windows. */
function timesOf(config: UpdateConfig, now: number): string[] {
  const { nextCheck, nextWindow } = statusOf(config) ?? {};
  const moments = [
    { what: 'next check at', time: nextCheck },
    { what: 'window opens at', time: nextWindow },
  ];
  const told = moments.flatMap(({ what, time = '' }) => {
    const ms = Date.parse(time);
    return ms > now ? [`${what} ${timeWithZone(ms, zoneOf(config))}`] : [];
  });
  return told.length === 0 ? [] : [`${config.metadata.name}: ${told.join(', ')}`];
}

/** Returns the time zone of the windows; undefined if it is UTC, or not a time zone. */
function zoneOf({ metadata }: UpdateConfig): string | undefined {
  const zone = metadata.annotations?.[TIME_ZONE_ANNOTATION] ?? 'UTC';
  return zone !== 'UTC' && isTimeZone(zone) ? zone : undefined;
}

function ahead(time: string | undefined, now: number): string {
  if (time === undefined) return '';
  const ms = Date.parse(time) - now;
  return ms <= 0 ? 'now' : `in ${formatDuration(ms)}`;
}
