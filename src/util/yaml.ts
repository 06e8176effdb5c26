/** The one reader and writer of YAML: as kubectl reads it, in linear time, and every error blames the text. */
import { isScalar, LineCounter, type Pair, parseAllDocuments, stringify, visit } from 'yaml';
import { messageOf } from './errors.ts';
import { firstRepeated } from './repeated.ts';
import { KUBECTL_SCALARS } from './yaml/scalars.ts';

/** Given each by name, these also hold in a file that starts with `%YAML 1.2`. */
const AS_KUBECTL = { schema: 'failsafe', merge: true, customTags: KUBECTL_SCALARS } as const;

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
    }
    return documents.map((document): unknown => document.toJS());
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

function placeOf(offset: number, lines: LineCounter): string {
  const { line, col } = lines.linePos(offset);
  return ` at line ${line}, column ${col}`;
}

function sentenceOf(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith('Maximum call stack')) return 'it is nested too deeply';
  if (message.startsWith('Excessive alias count'))
    return 'its aliases repeat too much; write the values out';
  return message;
}
