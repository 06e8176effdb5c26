/** Owns the Logger of long-lived processes, written by pino in the same form as the small JSON logger. */
import pino, { type Logger as Pino } from 'pino';
import { messageOf } from '../util/errors.ts';
import { type LogFields, type Logger, type LogLevel } from '../util/log.ts';

/** `destination` is where lines go: a file descriptor's stream, or anything with `write`. */
export function pinoLogger(level: LogLevel, destination: { write(line: string): void } = process.stderr): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return wrap(pino(options, destination));
}

function wrap(logger: Pino): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void =>
      logger[level](withTexts(fields), message);
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(logger.child(withTexts(fields))),
  };
}

/** Errors become their messages with causes: no stack traces in logs that people read. */
function withTexts(fields: LogFields): Record<string, unknown> {
  const entries = Object.entries(fields);
  return Object.fromEntries(entries.map(([key, value]) => [key, value instanceof Error ? messageOf(value) : value]));
}
