/**
 * Finds the kinds of the objects in a manifest, as kubectl would find them. Only the keys that tell the kind are read,
 * because a parser of YAML needs too long for several megabytes that anybody may have written. What is not understood is
 * told, and never passed over.
 */
import { parseJson } from '../../util/json.ts';
import { elementsIn, membersIn } from './json-parts.ts';

/** How a release of Helm with many objects may look, with a lot of room above it. */
const MOST_LINES = 200_000;
const MOST_LEVELS = 4;

export interface FoundKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** An object, or a list of objects: the fields that tell the kind, and its items. */
interface Node {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly items?: readonly Node[];
}

/** The text cannot be understood. */
class UnclearError extends Error {
  override readonly name = 'UnclearError';
}

/** Calls `found` with each kind. Returns false if the manifest has a part that cannot be understood. */
export function readKinds(manifest: string, found: (kind: FoundKind) => void): boolean {
  const lines = linesOf(manifest);
  if (lines === undefined) return false;
  let isClear = true;
  for (const document of documentsIn(lines))
    try {
      const node = document === 'unclear' ? unclear() : nodeOf(document, 0);
      if (node !== undefined) tell(node, {}, found);
    } catch (error) {
      if (!(error instanceof UnclearError)) throw error;
      isClear = false;
    }
  return isClear;
}

function unclear(): never {
  throw new UnclearError();
}

function linesOf(text: string): string[] | undefined {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1))
    if (++count > MOST_LINES) return undefined;
  return text.replace(/^\uFEFF/, '').split(/\r?\n/);
}

/** Returns the lines of each document. A document may also stand behind the three dashes, which no chart does. */
function documentsIn(lines: readonly string[]): (readonly string[] | 'unclear')[] {
  const documents: (readonly string[] | 'unclear')[] = [];
  let current: string[] = [];
  for (const line of lines)
    if (line.startsWith('---')) {
      documents.push(current);
      if (!isBlank(line.slice(3))) documents.push('unclear');
      current = [];
    } else if (!line.startsWith('%')) current.push(line);
  return [...documents, current];
}

/** Passes on the kind of the node and of its items. An item without a kind has that of its list, such as Role for RoleList. */
function tell({ items, ...node }: Node, list: Node, found: (kind: FoundKind) => void): void {
  const hasNone = node.kind === undefined && node.apiVersion === undefined;
  const { apiVersion = unclear(), kind = unclear() } = hasNone
    ? { apiVersion: list.apiVersion, kind: list.kind?.replace(/List$/, '') || undefined }
    : node;
  found({ apiVersion, kind });
  for (const item of items ?? []) tell(item, { apiVersion, kind }, found);
}

/** Returns what the lines say; undefined if they are empty. */
function nodeOf(lines: readonly string[], level: number): Node | undefined {
  const first = lines.find((line) => !isBlank(line));
  if (first === undefined) return undefined;
  if (level > MOST_LEVELS) return unclear();
  if (first.trimStart().startsWith('{'))
    return jsonNode(Buffer.from(lines.filter((line) => !isBlank(line)).join('\n')), level);
  return blockNode(lines, indentOf(first), level);
}

function jsonNode(json: Buffer, level: number): Node {
  const members = membersIn(json) ?? unclear();
  const items = members.get('items');
  return {
    apiVersion: jsonName(members.get('apiVersion')),
    kind: jsonName(members.get('kind')),
    ...(items !== undefined && { items: jsonItems(items, level) }),
  };
}

function jsonName(json: Buffer | undefined): string | undefined {
  if (json === undefined) return undefined;
  const value = json.length > 1_000 ? undefined : parseJson(json.toString());
  return typeof value === 'string' && NAME.test(value) ? value : unclear();
}

function jsonItems(json: Buffer, level: number): Node[] {
  if (level >= MOST_LEVELS) return unclear();
  if (json.toString('utf8', 0, 5).trim() === 'null') return [];
  return (elementsIn(json) ?? unclear()).map((each) => jsonNode(each, level + 1));
}

const NAME = /^[\w./-]{1,300}$/;
const KEY = /^(?:"([^"\\]{1,300})"|'([^']{1,300})'|([\w./-]{1,300}))\s{0,20}:(?:\s(.*))?$/;
const SCALAR = /^(?:"([\w./-]{1,300})"|'([\w./-]{1,300})'|([\w./-]{1,300}))(?:\s{1,20}#.*)?$/;
const TOLD = ['apiVersion', 'kind', 'items'];

/** Reads a mapping in block style, whose keys begin in this column. */
function blockNode(lines: readonly string[], column: number, level: number): Node {
  const told = new Map<string, string[]>();
  let key = '';
  for (const line of lines) {
    if (isBlank(line)) continue;
    const indent = indentOf(line);
    if (indent < column) return unclear();
    const match = indent === column ? KEY.exec(line.slice(column)) : null;
    if (match === null) {
      // A list of a key may begin in the column of the key. The other lines here end a value in brackets.
      told.get(key)?.push(line);
      continue;
    }
    const [, double, single, plain, rest = ''] = match;
    key = double ?? single ?? plain ?? '';
    if (!TOLD.includes(key)) continue;
    if (told.has(key)) return unclear();
    told.set(key, [rest.trim()]);
  }
  const items = told.get('items');
  return {
    apiVersion: scalarIn(told.get('apiVersion')),
    kind: scalarIn(told.get('kind')),
    ...(items !== undefined && { items: blockItems(items, level) }),
  };
}

function scalarIn(lines: readonly string[] | undefined): string | undefined {
  if (lines === undefined) return undefined;
  const [value = '', ...more] = lines;
  const [, double, single, plain] = SCALAR.exec(value) ?? [];
  return more.length > 0 ? unclear() : (double ?? single ?? plain ?? unclear());
}

function blockItems([rest = '', ...lines]: readonly string[], level: number): Node[] {
  if (rest.startsWith('[')) return jsonItems(Buffer.from([rest, ...lines].join('\n')), level);
  if (!isBlank(rest)) return unclear();
  const [first = ''] = lines;
  const column = indentOf(first);
  const items: string[][] = [];
  for (const line of lines) {
    const indent = indentOf(line);
    if (indent < column) return unclear();
    if (indent > column) items.at(-1)?.push(line);
    else if (/^-(?: |$)/.test(line.slice(column)))
      items.push([`${' '.repeat(column + 1)}${line.slice(column + 1)}`]);
    else return unclear();
  }
  return items.map((item) => nodeOf(item, level + 1) ?? unclear());
}

/** Returns true for a line without content: an empty one, or a comment. */
function isBlank(line: string): boolean {
  return /^\s*(?:#|$)/.test(line);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
