/** Reads the cron field of an UpdateConfig, which k0s and crontab interpret differently. */
import { Cron } from 'croner';
import { rfc3339 } from '../../util/clock.ts';
import { faultOfGoDuration, parseGoDuration } from '../../util/duration.ts';
import { ifPossible } from '../../util/errors.ts';

export interface CronSchedule {
  /**
   * Returns the first tick after `time`, both in milliseconds since the Unix epoch; undefined if there is no later
   * tick.
   */
  next(time: number): number | undefined;
}

const EXAMPLE = 'use six fields, seconds first, such as "0 0 3 * * *" for 03:00 each day';
/** An error message shows the next two ticks of both interpretations. These are the first ticks after this time. */
const SHOWN_FROM = Date.UTC(2026, 0, 1) - 1;

/** Parses the field. Throws an error with one sentence that says what was found and what would be right. */
export function readCron(text: string, timeZone: string): CronSchedule {
  const [, every] = /^@every\s+(\S+)$/.exec(text) ?? [];
  if (every !== undefined) return everyDuration(text, every);
  if (text.startsWith('@')) return scheduleOf(text.toLowerCase(), timeZone);
  const pattern = text.replaceAll('?', '*').trim();
  const fields = pattern.split(/\s+/);
  if (fields.length === 6) return scheduleOf(pattern, timeZone);
  if (fields.length !== 5) throw new Error(`"${text}" is not a cron schedule; ${EXAMPLE}`);
  const crontab = ifPossible(() => scheduleOf(`0 ${pattern}`, timeZone));
  const k0s = ifPossible(() => scheduleOf(`${pattern} *`, timeZone));
  const only = crontab ?? k0s;
  if (!only) throw new Error(`"${text}" is not a cron schedule; ${EXAMPLE}`);
  if (!crontab || !k0s) return only;
  throw new Error(
    `"${text}" has two meanings: k0s takes the first field as seconds (${timesOf(k0s)}, …), ` +
      `crontab as minutes (${timesOf(crontab)}, …); write six fields: "${pattern} *" or "0 ${pattern}"`,
  );
}

/** The schedule can be read, but no time matches it. */
class NeverDue extends Error {
  override readonly name = 'NeverDue';
}

function everyDuration(text: string, every: string): CronSchedule {
  const nanoseconds = parseGoDuration(every);
  const use = 'use an interval of at least one second, such as "@every 6h"';
  if (nanoseconds === undefined)
    throw new Error(
      `"${text}" is not a cron schedule: ${every} ${faultOfGoDuration(every)}; ${use}`,
    );
  const ms = nanoseconds / 1e6;
  if (ms < 1_000) throw new Error(`"${text}" is too often; ${use}`);
  // The ticks are counted from the epoch, so that every leader has the same ticks.
  return { next: (time) => (Math.floor(time / ms) + 1) * ms };
}

function scheduleOf(pattern: string, timeZone: string): CronSchedule {
  try {
    // Words such as @hourly stand for five fields and mean the same for k0s and crontab.
    const mode = pattern.startsWith('@') ? '5-part' : '6-part';
    const [, , , days, , weekdays] = pattern.split(/\s+/);
    // As in k0s, both day fields must match if one of them has a star, even a star with a step. The text 0/15 means
    // 0-59/15.
    const domAndDow = [days, weekdays].some((field) => /(^|,)\*/.test(field ?? ''));
    const cron = new Cron(pattern, { timezone: timeZone, mode, sloppyRanges: true, domAndDow });
    if (!cron.nextRun(new Date(SHOWN_FROM)))
      throw new NeverDue(`"${pattern}" is never due, because no month has such a day; ${EXAMPLE}`);
    return { next: (time) => cron.nextRun(new Date(time))?.getTime() };
  } catch (error) {
    if (error instanceof NeverDue) throw error;
    throw new Error(`"${pattern}" is not a cron schedule; ${EXAMPLE}`, { cause: error });
  }
}

function timesOf(schedule: CronSchedule): string {
  const first = schedule.next(SHOWN_FROM);
  const second = first === undefined ? undefined : schedule.next(first);
  return [first, second].flatMap((time) => (time === undefined ? [] : [rfc3339(time)])).join(', ');
}
