/** Logs whose lines a test can read. */
import { jsonLogger, type Logger, type LogLevel } from '../../../src/util/log.ts';

/** Adds each line to `lines`. */
export function buildLog(lines: string[], level: LogLevel, now: () => number = () => 0): Logger {
  return jsonLogger((line) => lines.push(line), now, level);
}
