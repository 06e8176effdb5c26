/**
 * Finds assignments that are hard to read: those that assign several unrelated values at once, and those inside an
 * expression.
 */
import { parseAst } from 'rolldown/parseAst';

type Node = Readonly<Record<string, unknown>> & { readonly start: number; readonly end: number };

interface Place {
  readonly node: Node;
  readonly parent: Node | undefined;
  /** The member of the parent that holds the node. */
  readonly member: string;
}

interface Breaches {
  /** Assignments of unrelated values to several names at once. Swaps are left out. */
  readonly paired: readonly string[];
  /** Assignments that are part of an expression. */
  readonly inline: readonly string[];
}

/** The assignments in TypeScript code that are hard to read: each as `line: code`. */
export function breachesIn(code: string): Breaches {
  const places = placesIn(code);
  const lines = (found: readonly Place[]): string[] => found.map(({ node }) => lineOf(node, code));
  return {
    paired: lines(places.filter(({ node }) => isPaired(node, code))),
    inline: lines(places.filter(isInline)),
  };
}

function isInline({ node, parent, member }: Place): boolean {
  if (node['type'] !== 'AssignmentExpression') return false;
  if (parent?.['type'] === 'ExpressionStatement') return false;
  const isOfLoop = parent?.['type'] === 'ForStatement' && ['init', 'update'].includes(member);
  return !isOfLoop;
}

function isPaired(node: Node, code: string): boolean {
  const target = node['id'] ?? node['left'];
  const value = withoutTypes(node['init'] ?? node['right']);
  if (!isNode(target) || !isNode(value)) return false;
  const isObjects = target['type'] === 'ObjectPattern' && value['type'] === 'ObjectExpression';
  const isArrays = target['type'] === 'ArrayPattern' && value['type'] === 'ArrayExpression';
  if (!isObjects && !isArrays) return false;
  const values = nodesOf(isObjects ? value['properties'] : value['elements']);
  // If a list or an object is spread here, its members belong together, so this is no breach.
  if (values.some(({ type }) => type === 'SpreadElement')) return false;
  if (isObjects) return true;
  const text = ({ start, end }: Node): string => code.slice(start, end);
  const targets = nodesOf(target['elements']).map(text);
  const isSwap = targets.toSorted().join() === values.map(text).toSorted().join();
  return !isSwap;
}

/** The expression in `expression as T` and `expression satisfies T`. */
function withoutTypes(node: unknown): unknown {
  if (!isNode(node)) return node;
  const isTyped = node['type'] === 'TSAsExpression' || node['type'] === 'TSSatisfiesExpression';
  return isTyped ? withoutTypes(node['expression']) : node;
}

function lineOf({ start, end }: Node, code: string): string {
  const line = code.slice(0, start).split('\n').length;
  return `${line}: ${code.slice(start, end).replace(/\s+/g, ' ')}`;
}

const TYPES = ['VariableDeclarator', 'AssignmentExpression'];

/** Returns all places that give a value to a name. */
function placesIn(code: string): Place[] {
  const places: Place[] = [];
  function visit(value: unknown, parent: Node | undefined, member: string): void {
    if (Array.isArray(value)) {
      for (const each of value) visit(each, parent, member);
      return;
    }
    if (!isObject(value)) return;
    const node = isNode(value) ? value : undefined;
    if (node !== undefined && TYPES.includes(String(node['type'])))
      places.push({ node, parent, member });
    for (const [name, inner] of Object.entries(value)) visit(inner, node ?? parent, name);
  }
  visit(parseAst(code, { lang: 'ts' }), undefined, '');
  return places;
}

function nodesOf(list: unknown): Node[] {
  return Array.isArray(list) ? list.filter(isNode) : [];
}

function isNode(value: unknown): value is Node {
  return isObject(value) && typeof value['type'] === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
