/** The one reader and writer of YAML: as kubectl reads it, in linear time, and every error blames the text. */
import {
  type Document,
  isAlias,
  isPair,
  isScalar,
  LineCounter,
  type Pair,
  parseAllDocuments,
  stringify,
  visit,
} from 'yaml';
import { messageOf } from './errors.ts';
import { firstRepeated } from './repeated.ts';
import { KUBECTL_SCALARS } from './yaml/scalars.ts';

/** Given each by name, these also hold in a file that starts with `%YAML 1.2`. */
const AS_KUBECTL = { schema: 'failsafe', merge: true, customTags: KUBECTL_SCALARS } as const;

/** Each alias is looked for among all anchors of its document. */
const MOST_ALIASES = 1_000;
/** Values that aliases may stand for, beside those that are written out. */
const MOST_REPEATED = 100_000;
const REPEATED = 'its aliases repeat too much; write the values out';
/** Of YAML that a server or a tenant wrote: so many bytes take a few tenths of a second at worst. */
const MOST_FOREIGN_BYTES = 64 * 1024;

/** As `parseYaml`, of text that no administrator wrote: its reader must not be held up. */
export function parseForeignYaml(text: string, fail: (why: string) => never): unknown[] {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_FOREIGN_BYTES)
    fail(`it has ${bytes} bytes, and at most ${MOST_FOREIGN_BYTES} are read`);
  return parseYaml(text, fail);
}

/** The documents of `text`, `null` for one that holds nothing; `fail` gets one sentence. */
export function parseYaml(text: string, fail: (why: string) => never): unknown[] {
  const lines = new LineCounter();
  try {
    // The parser's own check of keys compares each with every other one, and it draws the place of every fault.
    const fast = { uniqueKeys: false, prettyErrors: false, lineCounter: lines };
    const documents = [...parseAllDocuments(text, { ...AS_KUBECTL, ...fast })];
    for (const document of documents) {
      const [fault] = document.errors;
      if (fault !== undefined) throw new Error(`${fault.message}${placeOf(fault.pos[0], lines)}`);
      visit(document, { Map: (_key, { items }) => refuseTwice(items, lines) });
      refuseRepeated(document);
    }
    // The parser's own check of aliases may visit the whole document for each pair of them.
    return documents.map((document): unknown => document.toJS({ maxAliasCount: -1 }));
  } catch (error) {
    return fail(sentenceOf(error));
  }
}

/** One document, in which every text is quoted that kubectl would read as something else. */
export function writeYaml(value: unknown): string {
  return stringify(value, { compat: KUBECTL_SCALARS, lineWidth: 0 });
}

function refuseTwice(items: readonly Pair[], lines: LineCounter): void {
  const keys = items.map(({ key }) => key).filter(isScalar);
  const own = keys.filter(({ value }) => value !== '<<');
  const twice = firstRepeated(own, ({ value }) => value);
  if (!twice) return;
  throw new Error(`Map keys must be unique${placeOf(twice.range?.[0] ?? 0, lines)}`);
}

/** In one pass, since an anchor comes before its aliases. */
function refuseRepeated(document: Document): void {
  const sizes = new Map<string, number>();
  let aliases = 0;
  let repeated = 0;
  const sizeOf = (node: unknown): number => {
    if (isAlias(node)) {
      const size = sizes.get(node.source) ?? 0;
      aliases += 1;
      repeated += size;
      if (aliases > MOST_ALIASES || repeated > MOST_REPEATED) throw new Error(REPEATED);
      return size;
    }
    if (isPair(node)) return sizeOf(node.key) + sizeOf(node.value);
    const { anchor, items } = Object(node) as { anchor?: string; items?: readonly unknown[] };
    // An alias inside of what it stands for would unfold without end.
    if (anchor !== undefined) sizes.set(anchor, Infinity);
    const size = (items ?? []).reduce<number>((sum, item) => sum + sizeOf(item), 1);
    if (anchor !== undefined) sizes.set(anchor, size);
    return size;
  };
  sizeOf(document.contents);
}

function placeOf(offset: number, lines: LineCounter): string {
  const { line, col } = lines.linePos(offset);
  return ` at line ${line}, column ${col}`;
}

function sentenceOf(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith('Maximum call stack')) return 'it is nested too deeply';
  return message;
}
