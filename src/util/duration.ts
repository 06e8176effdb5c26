/** Owns how lengths of time are written by people and for people. */

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of `250ms`, `90s`, `5m`, `1h30m`; undefined where the text is nothing like these, or zero. */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d+(?:ms|s|m|h))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)([a-z]+)/g)];
  const milliseconds = parts.reduce((sum, [, digits, unit = '']) => sum + Number(digits) * (UNITS[unit] ?? 0), 0);
  return milliseconds > 0 ? milliseconds : undefined;
}

/** `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`: two units at most, and never a false precision. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return join(minutes, 'min', seconds % 60, 's');
  return join(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
