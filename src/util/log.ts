/** The log of every process: one JSON object a line. */
import { type Clock, isoTime, systemClock } from './clock.ts';
import { messageOf } from './errors.ts';
import { escapeSteering } from './printable.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger
  extends Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>> {
  child(fields: LogFields): Logger;
}

const ORDER: Readonly<Record<LogLevel, number>> = { debug: 10, info: 20, warn: 30, error: 40 };

/** One JSON object a line: `time`, `level`, `msg`, then the fields. Errors are written with their causes. */
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

/** For logs of retries: true for a text that differs from the last one, or once a minute. */
export function sparingly(clock: Pick<Clock, 'monotonic'>): (text: string) => boolean {
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
