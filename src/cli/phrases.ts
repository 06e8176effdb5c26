/** Phrases that outputs share: ages, short lists, sentences that fit a width. */
import { formatDuration } from '../util/duration.ts';

/** How long ago `since` (RFC 3339) was, in whole seconds; `0 s` if clocks disagree. */
export function age(since: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  return seconds === 0 ? '0 s' : formatDuration(seconds * 1000);
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** `a, b and 3 more`. */
export function listed(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).join(', ');
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Any space but one between a number and its unit. */
const BREAK = / (?!(?:ms|s|min|h)\b)/;

/** Broken at spaces into lines of at most `width` characters; every line but the first is indented. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(BREAK)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
