/** A line of another program's log as a report may show it: short, safe for a terminal, and without secrets. */
import { printable } from './printable.ts';

const MOST_CHARACTERS = 120;
/** Of a line, whose writer may have made it long: the search for secrets takes the square of it. */
const MOST_SEARCHED = 2_000;
/** Whoever reads Nodes reads the line: passwords in URLs, values of queries, and what is called a secret. */
const SECRETS =
  /([a-z][a-z\d+.-]{0,30}:\/\/)\S*@|([?&][\w.-]+=)[^\s&"']+|((?:token|password|passwd|secret)["']?\s*[=:]\s*["']?)[^\s"',]+/gi;

export function shownLine(line: string): string {
  const hide = (_all: string, url?: string, query?: string, key?: string): string =>
    url === undefined ? `${query ?? key}***` : `${url}***@`;
  const text = printable(line.slice(0, MOST_SEARCHED)).replaceAll(SECRETS, hide).trim();
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}
