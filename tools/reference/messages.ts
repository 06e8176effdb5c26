/** Makes the reference page of every sentence that the product can print, so that all can be read in one sitting. */
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** These have reference pages of their own, or hold scripts. */
const ELSEWHERE = [
  'src/util/errors.ts',
  'src/engine/model/reasons.ts',
  'src/kubeadm/scripts.ts',
  'src/cli/completion.ts',
  'src/runtime/metrics.ts',
];

/** Their help is on the page about commands; their errors are not. */
const HELP = ['src/cmd/commands.ts', 'src/cmd/install-commands.ts'];

/** Their descriptions of fields are on the page about kinds. What answers a wrong value begins like this. */
const SCHEMAS = /^src\/api\/.+\//;
const VALIDATION = /^(?=[a-z`]).*\b(?:must|expected|only for)\b/;

/** What the parser returns, as far as it matters here. */
interface Syntax {
  readonly type: string;
  readonly [member: string]: unknown;
}

export function messageReference(): string {
  const files = globSync('src/**/*.ts', { cwd: ROOT })
    .filter((path) => !path.endsWith('.test.ts') && !ELSEWHERE.includes(path))
    .toSorted((a, b) => dirname(a).localeCompare(dirname(b)) || a.localeCompare(b))
    .map((path) => ({ path, messages: messagesOf(path) }))
    .filter(({ messages }) => messages.length > 0);
  const folders = Map.groupBy(files, ({ path }) => dirname(path));
  return `${[
    '# Messages',
    '',
    'Generated from `src` by `npm run generate`: edit the sentences there. All texts of more than one word, by folder and file: messages,',
    'log lines and Events. `{name}` stands for a value. [Errors](errors.md), [reasons](reasons.md), [metrics](metrics.md), the help of',
    '[commands](cli.md) and the [fields of kinds](crds.md) have pages of their own.',
    ...[...folders].flatMap(([folder, members]) => [
      '',
      `## ${folder}`,
      ...members.flatMap(({ path, messages }) => [
        '',
        `\`${path}\``,
        '',
        ...messages.map((text) => `- ${inCode(text)}`),
      ]),
    ]),
  ].join('\n')}\n`;
}

function messagesOf(path: string): string[] {
  const source = readFileSync(`${ROOT}${path}`, 'utf8');
  if (HELP.includes(path)) return errorsIn(parseAst(source, { lang: 'ts' })).flatMap(textsIn);
  const texts = messagesIn(source);
  return SCHEMAS.test(path) ? texts.filter((text) => VALIDATION.test(text)) : texts;
}

/** The texts of a source that read like a sentence or a part of one, each once, in their order. */
export function messagesIn(source: string): string[] {
  return textsIn(parseAst(source, { lang: 'ts' }));
}

/** Each `new …Error(…)`. */
function errorsIn(node: unknown): unknown[] {
  if (Array.isArray(node)) return node.flatMap(errorsIn);
  if (!isSyntax(node)) return [];
  const isError =
    node.type === 'NewExpression' && isSyntax(node['callee']) && String(node['callee']['name']).endsWith('Error');
  return isError ? [node] : Object.values(node).flatMap(errorsIn);
}

function textsIn(tree: unknown): string[] {
  const texts: string[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (!isSyntax(node) || isNoMessage(node)) return;
    const text = textOf(node);
    if (text !== undefined && isSentence(text)) texts.push(text.trim());
    Object.values(node).forEach(visit);
  };
  visit(tree);
  return [...new Set(texts)];
}

function isSyntax(node: unknown): node is Syntax {
  return typeof node === 'object' && node !== null && typeof (node as Syntax).type === 'string';
}

/** Imports, types, and descriptions of fields, which the page about kinds has. */
function isNoMessage({ type, callee }: Syntax): boolean {
  if (/^(?:Import|ExportAll|TS(?!As|NonNull|Satisfies))/.test(type)) return true;
  const property = isSyntax(callee) ? callee['property'] : undefined;
  return type === 'CallExpression' && isSyntax(property) && property['name'] === 'describe';
}

function textOf(node: Syntax): string | undefined {
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value'];
  if (node.type !== 'TemplateLiteral') return undefined;
  const values = node['expressions'] as Syntax[];
  const parts = node['quasis'] as { value: { cooked: string } }[];
  return parts.map(({ value }, index) => `${value.cooked}${values[index] ? placeholder(values[index]) : ''}`).join('');
}

/** The name of what is filled in, or both of two texts. */
function placeholder(node: Syntax): string {
  const { type } = node;
  if (type === 'Identifier') return `{${String(node['name'])}}`;
  if (type === 'MemberExpression') return placeholder(node['property'] as Syntax);
  if (type === 'ConditionalExpression') {
    const both = [node['consequent'], node['alternate']].map((part) => (isSyntax(part) ? (textOf(part) ?? '…') : '…'));
    return `{${both.join('|')}}`;
  }
  const [first] = type === 'CallExpression' ? (node['arguments'] as Syntax[]) : [];
  return first?.type === 'Identifier' || first?.type === 'MemberExpression' ? placeholder(first) : '{…}';
}

/** What only a shell or a server reads, and the help of a program. */
const CODE = /=>|^\s*#!|\$[({A-Z]|^Bearer |^Usage: |max-age=|^NT |^-----/;

/** Two words of letters side by side, and no code. */
function isSentence(text: string): boolean {
  return /[a-z]{2,},? (?:[a-z{]{2,}|a )|[a-z]{2,}: [a-z{]|\} [a-z]{2,}/i.test(text) && !CODE.test(text);
}

/** One line that no renderer changes. */
function inCode(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  const quote = line.includes('`') ? '``' : '`';
  const pad = line.startsWith('`') || line.endsWith('`') ? ' ' : '';
  return `${quote}${pad}${line}${pad}${quote}`;
}
