/** Writes the log of every process, with one JSON object in each line. */
import { isoTime, type MonotonicClock, systemClock } from './clock.ts';
import { messageOf } from './errors.ts';
import { escapeSteering } from './printable.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger
  extends Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>> {
  /** Returns a logger that adds these fields to each line. */
  child(fields: LogFields): Logger;
}

const ORDER: Readonly<Record<LogLevel, number>> = { debug: 10, info: 20, warn: 30, error: 40 };

/**
 * Returns a logger. Each line is a JSON object with `time`, `level`, `msg` and the fields. Errors
 * are written with their causes.
 */
export function jsonLogger(
  write: (line: string) => void,
  now: () => number,
  level: LogLevel,
  base: LogFields = {},
): Logger {
  const at =
    (own: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (ORDER[own] < ORDER[level]) return;
      const line = { time: isoTime(now()), level: own, msg: message, ...base, ...fields };
      const text = JSON.stringify(line, (_key, value: unknown) =>
        value instanceof Error ? messageOf(value) : value,
      );
      write(`${escapeSteering(text)}\n`);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => jsonLogger(write, now, level, { ...base, ...fields }),
  };
}

/** Returns a logger that writes lines of this level and above to standard error. */
export function stderrLogger(level: LogLevel): Logger {
  const write = (line: string): boolean => process.stderr.write(line);
  return jsonLogger(write, () => systemClock.now(), level);
}

const skip = (): void => undefined;
export const silentLogger: Logger = {
  debug: skip,
  info: skip,
  warn: skip,
  error: skip,
  child: () => silentLogger,
};

const REPEAT_MS = 60_000;

/**
 * Returns a function for logs of retries. The function returns true if the text differs from the last text. For the
 * same text, it returns true at most once a minute.
 */
export function sparingly(clock: MonotonicClock): (text: string) => boolean {
  let last = '';
  let at = 0;
  return (text) => {
    const now = clock.monotonic();
    if (text === last && now - at < REPEAT_MS) return false;
    last = text;
    at = now;
    return true;
  };
}
