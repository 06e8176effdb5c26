/**
 * Finds the parts of a JSON text without building its values. A short text can have millions of small values, which need
 * a hundred times its size once they are built.
 */
import { parseJson } from '../../util/json.ts';

const MOST_PARTS = 10_000;
const LONGEST_KEY = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const BLANKS: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];
/** A number, a boolean or null ends before one of these. */
const ENDS: readonly number[] = [...BLANKS, COMMA, CLOSE_OBJECT, CLOSE_LIST];

/** Returns the text of each member of the object; undefined if the text is no JSON object, or has too many members. */
export function membersIn(json: Buffer): ReadonlyMap<string, Buffer> | undefined {
  const members = new Map<string, Buffer>();
  const isRead = readParts(json, [OPEN_OBJECT, CLOSE_OBJECT], (at) => {
    const keyEnd = endOfString(json, at);
    const colon = afterBlanks(json, keyEnd);
    if (json[at] !== QUOTE || json[colon] !== COLON || keyEnd - at > LONGEST_KEY) return undefined;
    const key = parseJson(json.toString('utf8', at, keyEnd));
    if (typeof key !== 'string') return undefined;
    const start = afterBlanks(json, colon + 1);
    const end = endOfValue(json, start);
    members.set(key, json.subarray(start, end));
    return end > start ? end : undefined;
  });
  return isRead ? members : undefined;
}

/** Returns the text of each element of the list; undefined if the text is no JSON list, or has too many elements. */
export function elementsIn(json: Buffer): readonly Buffer[] | undefined {
  const elements: Buffer[] = [];
  const isRead = readParts(json, [OPEN_LIST, CLOSE_LIST], (start) => {
    const end = endOfValue(json, start);
    elements.push(json.subarray(start, end));
    return end > start ? end : undefined;
  });
  return isRead ? elements : undefined;
}

/** Calls `read` at each part between the brackets. It returns the end of the part; undefined if there is none. */
function readParts(
  json: Buffer,
  [open, close]: readonly [open: number, close: number],
  read: (at: number) => number | undefined,
): boolean {
  const start = afterBlanks(json, 0);
  if (json[start] !== open) return false;
  let at = afterBlanks(json, start + 1);
  for (let parts = 0; json[at] !== close || parts > 0; parts++) {
    const end = parts < MOST_PARTS ? read(at) : undefined;
    if (end === undefined) return false;
    at = afterBlanks(json, end);
    if (json[at] === close) break;
    if (json[at] !== COMMA) return false;
    at = afterBlanks(json, at + 1);
  }
  return afterBlanks(json, at + 1) === json.length;
}

function afterBlanks(json: Buffer, from: number): number {
  let at = from;
  while (BLANKS.includes(json[at] ?? 0)) at++;
  return at;
}

/** Returns where the value ends that begins here. A value that does not end has no length. */
function endOfValue(json: Buffer, from: number): number {
  const first = json[from];
  if (first === QUOTE) return endOfString(json, from);
  if (first === OPEN_OBJECT || first === OPEN_LIST) return endOfNested(json, from);
  let at = from;
  while (at < json.length && !ENDS.includes(json[at] ?? 0)) at++;
  return at;
}

function endOfNested(json: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < json.length) {
    const byte = json[at];
    if (byte === QUOTE) {
      const end = endOfString(json, at);
      if (end === at) return from;
      at = end;
      continue;
    }
    at++;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
    if (depth === 0) return at;
  }
  return from;
}

function endOfString(json: Buffer, from: number): number {
  for (let at = from + 1; at < json.length; at++) {
    if (json[at] === QUOTE) return at + 1;
    if (json[at] === BACKSLASH) at++;
  }
  return from;
}
