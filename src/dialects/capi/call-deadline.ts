/** Owns how long one call may take: what its caller grants, as Go writes durations, and never more than what is configured. */
import type { Clock } from '../../util/clock.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};
/** Milliseconds in which the answer travels: one that comes after its caller hung up is lost. */
const TRAVEL_MS = 500;
const LEAST_MS = 100;

/** Milliseconds of `10s`, `1m30s`, `1.5s`; undefined where the text is no positive duration. */
export function goDuration(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|ns))+$/.test(text)) return undefined;
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/g);
  const total = [...parts].reduce((sum, [, digits, unit = '']) => sum + Number(digits) * (UNIT_MS[unit] ?? 0), 0);
  return total > 0 ? total : undefined;
}

/** Milliseconds in which to answer; `granted` is the value of `?timeout=`, `limitMs` what is configured. */
export function answerWithin(granted: string | null, limitMs: number): number {
  return Math.max(LEAST_MS, Math.min(goDuration(granted ?? '') ?? limitMs, limitMs) - TRAVEL_MS);
}

/** The result of `work`, or `late` where the time is over first; then the signal tells `work` to end. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
  late: () => T,
): Promise<T> {
  const time = new AbortController();
  const over = Promise.withResolvers<T>();
  const cancel = clock.schedule(ms, () => {
    over.resolve(late());
    time.abort(new Error('the time to answer is over'));
  });
  try {
    return await Promise.race([work(time.signal), over.promise]);
  } finally {
    cancel();
  }
}
