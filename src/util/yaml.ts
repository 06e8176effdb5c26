/**
 * Reads and writes all YAML. A text means the same as for kubectl, parsing takes linear time, and every failure is
 * reported as an error of the text.
 */
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

/**
 * The options with which the parser reads a text as kubectl does. They are given one by one, so that they also apply to a file that starts
 * with `%YAML 1.2`.
 */
const AS_KUBECTL = { schema: 'failsafe', merge: true, customTags: KUBECTL_SCALARS } as const;

/** The most aliases of a document. The parser looks for each alias among all anchors. */
const MOST_ALIASES = 1_000;
/** The most values that aliases may expand to, in addition to the values in the text itself. */
const MOST_REPEATED = 100_000;
const REPEATED = 'its aliases repeat too much; write the values out';
/**
 * The most bytes of YAML from a server or a tenant. In the worst case, the parser needs a few tenths of a second for
 * that many bytes.
 */
const MOST_FOREIGN_BYTES = 64 * 1024;

/**
 * Returns the only document of `text`, and `null` if there is none. An empty document does not count: a text may end
 * with `---`, or have only a comment before its first `---`.
 */
export function parseYamlDocument(text: string, fail: (why: string) => never): unknown {
  const [document = null, ...others] = filledDocuments(text, fail);
  if (others.length > 0)
    return fail(`it has ${others.length + 1} YAML documents, and may have only one`);
  return document;
}

/**
 * Returns the first document of `text` that is not empty, and `null` if there is none. kubectl reads a kubeconfig in
 * this way.
 */
export function parseFirstYamlDocument(text: string, fail: (why: string) => never): unknown {
  return filledDocuments(text, fail)[0] ?? null;
}

function filledDocuments(text: string, fail: (why: string) => never): unknown[] {
  return parseYaml(text, fail).filter((document) => document !== null);
}

/**
 * Works like `parseYamlDocument`, for texts that do not come from an administrator. It refuses a long text, because
 * parsing must not block its caller.
 */
export function parseForeignYaml(text: string, fail: (why: string) => never): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_FOREIGN_BYTES)
    fail(`it has ${bytes} bytes, and at most ${MOST_FOREIGN_BYTES} are read`);
  return parseYamlDocument(text, fail);
}

/**
 * Returns the documents of `text`, with `null` for an empty document. It calls `fail` with one sentence if the text is
 * not valid.
 */
export function parseYaml(text: string, fail: (why: string) => never): unknown[] {
  const lines = new LineCounter();
  try {
    // The checks of the parser are turned off, because they are slow: it compares each key with every other key, and its
    // messages quote the lines around every error.
    const fast = { uniqueKeys: false, prettyErrors: false, lineCounter: lines };
    const documents = [...parseAllDocuments(text, { ...AS_KUBECTL, ...fast })];
    for (const document of documents) {
      const [fault] = document.errors;
      // The library reads nested values by recursion, so values that are nested too deeply exhaust the stack.
      if (fault?.code === 'RESOURCE_EXHAUSTION') throw new RangeError(fault.message);
      if (fault !== undefined) throw new Error(`${fault.message}${placeOf(fault.pos[0], lines)}`);
      visit(document, { Map: (_key, { items }) => refuseTwice(items, lines) });
      refuseRepeated(document);
    }
    // The parser's own check of aliases is turned off, because it may visit the whole document for each pair of
    // aliases.
    return documents.map((document): unknown => document.toJS({ maxAliasCount: -1 }));
  } catch (error) {
    return fail(sentenceOf(error));
  }
}

/**
 * Returns the value as one YAML document. It quotes every text that kubectl would read as something
 * else.
 */
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

/**
 * Throws if aliases repeat too much. One pass is enough, because an anchor comes before its
 * aliases.
 */
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
    // The anchor is infinitely large until its value is complete, because an alias inside of its own value would expand
    // for ever.
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
  return error instanceof RangeError ? 'it is nested too deeply' : messageOf(error);
}
