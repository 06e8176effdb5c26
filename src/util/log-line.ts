/**
 * Prepares a line from the log of another program for a report. The result is short, safe for a terminal, and without
 * secrets.
 */
import { printable } from './printable.ts';

const MOST_CHARACTERS = 120;
/**
 * The most characters that are searched for secrets. The line may be long, and the time of the
 * search grows with the square of its length.
 */
const MOST_SEARCHED = 2_000;
/**
 * Matches passwords in URLs, values of URL queries, and values with a name such as `token` or `password`. They must be
 * hidden, because everybody who may read Nodes can read the line.
 */
const SECRETS =
  /([a-z][a-z\d+.-]{0,30}:\/\/)\S*@|([?&][\w.-]+=)[^\s&"']+|((?:token|password|passwd|secret)["']?\s*[=:]\s*["']?)[^\s"',]+/gi;

export function shownLine(line: string): string {
  const hide = (_all: string, url?: string, query?: string, key?: string): string =>
    url === undefined ? `${query ?? key}***` : `${url}***@`;
  const text = printable(line.slice(0, MOST_SEARCHED)).replaceAll(SECRETS, hide).trim();
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}
