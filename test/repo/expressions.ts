/**
 * Collects the regular expressions of TypeScript code, and finds those that need more than linear time in the length of
 * the text.
 */
import { parseAst } from 'rolldown/parseAst';
import { analyse } from 'scslre';

export interface Expression {
  readonly source: string;
  readonly flags: string;
}

export interface Expressions {
  /** Literals, and calls of `new RegExp` whose text is constant in the file. */
  readonly known: readonly Expression[];
  /** The code of all other calls of `new RegExp`. */
  readonly unknown: readonly string[];
}

type Visit = (node: Readonly<Record<string, unknown>>) => void;

export function expressionsIn(code: string): Expressions {
  const program = parseAst(code, { lang: 'ts' });
  const constants = new Map<string, unknown>();
  walk(program, ({ type, id, init }) => {
    if (type === 'VariableDeclarator') constants.set(memberOf(id, 'name'), init);
  });
  const known: Expression[] = [];
  const unknown: string[] = [];
  walk(program, (node) => {
    const literal = node['regex'];
    if (node['type'] === 'Literal' && isNode(literal))
      known.push({ source: memberOf(literal, 'pattern'), flags: memberOf(literal, 'flags') });
    if (node['type'] !== 'NewExpression' || memberOf(node['callee'], 'name') !== 'RegExp') return;
    const [pattern, flags] = node['arguments'] as unknown[];
    const source = textOf(pattern, constants);
    if (source === undefined) unknown.push(code.slice(Number(node['start']), Number(node['end'])));
    else known.push({ source, flags: textOf(flags, constants) ?? '' });
  });
  return { known, unknown };
}

/**
 * Returns the part of an expression that takes at least quadratic time in the length of a text. This is either two
 * repetitions that can both match the same text, or one repetition that is tried again from each character. Undefined
 * if there is no such part.
 */
export function superLinearPart({ source, flags }: Expression): string | undefined {
  const [report] = analyse({ source, flags }).reports;
  if (report === undefined) return undefined;
  const parts = report.type === 'Trade' ? [report.startQuant, report.endQuant] : [report.quant];
  return parts.map(({ raw }) => raw).join(' and ');
}

/** The text of a constant expression; undefined if it depends on something else. */
function textOf(node: unknown, constants: ReadonlyMap<string, unknown>): string | undefined {
  if (!isNode(node)) return undefined;
  const type = node['type'];
  if (type === 'Literal') return isNode(node['regex']) ? undefined : String(node['value']);
  if (type === 'Identifier') return textOf(constants.get(memberOf(node, 'name')), constants);
  if (type === 'MemberExpression' && memberOf(node['property'], 'name') === 'source') {
    const constant = constants.get(memberOf(node['object'], 'name'));
    return isNode(constant) && isNode(constant['regex'])
      ? memberOf(constant['regex'], 'pattern')
      : undefined;
  }
  if (type !== 'TemplateLiteral') return undefined;
  const quasis = node['quasis'] as { value: { cooked: string } }[];
  const parts = (node['expressions'] as unknown[]).map((each) => textOf(each, constants));
  if (parts.includes(undefined)) return undefined;
  return quasis.map(({ value }, index) => value.cooked + (parts[index] ?? '')).join('');
}

function walk(node: unknown, visit: Visit): void {
  if (Array.isArray(node)) {
    for (const each of node) walk(each, visit);
    return;
  }
  if (!isNode(node)) return;
  visit(node);
  for (const [name, member] of Object.entries(node)) if (name !== 'regex') walk(member, visit);
}

function isNode(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function memberOf(node: unknown, name: string): string {
  return isNode(node) ? String(node[name]) : '';
}
