/** Parses YAML that anybody may have written: in linear time, and every error blames the text. */
import {
  isScalar,
  LineCounter,
  type Pair,
  parseAllDocuments,
  type SchemaOptions,
  visit,
} from 'yaml';
import { messageOf } from './errors.ts';
import { firstRepeated } from './repeated.ts';

/** The documents of `text`; `fail` gets one sentence. */
export function parseYaml(
  text: string,
  fail: (why: string) => never,
  options: SchemaOptions & { readonly version?: '1.1' } = {},
): unknown[] {
  const lines = new LineCounter();
  try {
    // The parser's own check of keys compares each with every other one.
    const documents = [
      ...parseAllDocuments(text, { ...options, uniqueKeys: false, lineCounter: lines }),
    ];
    for (const document of documents) {
      const [fault] = document.errors;
      if (fault !== undefined) throw fault;
      visit(document, { Map: (_key, { items }) => refuseTwice(items, lines) });
    }
    return documents.map((document): unknown => document.toJS());
  } catch (error) {
    return fail(sentenceOf(error));
  }
}

function refuseTwice(items: readonly Pair[], lines: LineCounter): void {
  const keys = items.map(({ key }) => key).filter(isScalar);
  const own = keys.filter(({ value }) => value !== '<<');
  const twice = firstRepeated(own, ({ value }) => value);
  if (!twice) return;
  const { line, col } = lines.linePos(twice.range?.[0] ?? 0);
  throw new Error(`Map keys must be unique at line ${line}, column ${col}`);
}

function sentenceOf(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith('Maximum call stack')) return 'it is nested too deeply';
  if (message.startsWith('Excessive alias count'))
    return 'its aliases repeat too much; write the values out';
  // The parser draws the place below its sentence.
  return message.split(':\n', 1)[0] ?? '';
}
