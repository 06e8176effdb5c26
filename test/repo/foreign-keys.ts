/** Finds look-ups of text in plain objects, and conversions of unknown values. Uses the types that the compiler knows. */
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import {
  isBinaryExpression,
  isBindingElement,
  isCallExpression,
  isComputedPropertyName,
  isElementAccessExpression,
  isIdentifier,
} from 'typescript/unstable/ast/is';
import { API, type Checker, type Program, TypeFlags } from 'typescript/unstable/sync';

/**
 * The types of texts that can have any value. A key that is always a word of a fixed list has another type, and is
 * safe.
 */
const ANY_TEXT = TypeFlags.String | TypeFlags.TemplateLiteral | TypeFlags.StringMapping;

/** The types of values whose members are not known. In JSON, for example, `toString` may be a number. */
const ANYTHING = TypeFlags.Unknown | TypeFlags.Any;

/** Functions that call `toString` or `valueOf` of an object, and throw if this member is not a function. */
const CONVERSIONS = ['String', 'Number', 'BigInt'];

/**
 * Returns every place that looks up text in an object in such a way that an inherited member, such as `constructor`,
 * can be found: `record[text]`, `{ [text]: value } = record` and `text in record`. Returns also every conversion of an
 * unknown value, such as `String(json)`. Each result has the file, the line and the code.
 */
export function unsafeReadings(root: string, configFile: string): string[] {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [`${root}${configFile}`] });
    return snapshot.getProjects().flatMap(({ program, checker }) =>
      filesBelow(root, program).flatMap((file) =>
        lookUpsIn(file, checker).map((node) => {
          const start = node.getStart(file);
          const line = file.text.slice(0, start).split('\n').length;
          return `${file.fileName.slice(root.length)}:${line}: ${file.text.slice(start, node.end)}`;
        }),
      ),
    );
  } finally {
    api.close();
  }
}

function filesBelow(root: string, program: Program): SourceFile[] {
  return program
    .getSourceFileNames()
    .filter((name) => name.startsWith(root) && !name.includes('/node_modules/'))
    .flatMap((name) => program.getSourceFile(name) ?? []);
}

function lookUpsIn(file: SourceFile, checker: Checker): Node[] {
  const found: Node[] = [];
  const visit = (node: Node): void => {
    const key = keyOf(node);
    const isLookUp = key !== undefined && isText(key, checker);
    if (isLookUp || isConversion(node, checker)) found.push(node);
    node.forEachChild(visit);
  };
  file.forEachChild(visit);
  return found;
}

/** Returns the expression whose value is the name of the member that is looked up. */
function keyOf(node: Node): Node | undefined {
  if (isElementAccessExpression(node)) return node.argumentExpression;
  if (isBinaryExpression(node))
    return node.operatorToken.kind === SyntaxKind.InKeyword ? node.left : undefined;
  if (!isBindingElement(node) || node.propertyName === undefined) return undefined;
  return isComputedPropertyName(node.propertyName) ? node.propertyName.expression : undefined;
}

function isConversion(node: Node, checker: Checker): boolean {
  if (!isCallExpression(node) || !isIdentifier(node.expression)) return false;
  const [value] = node.arguments;
  if (value === undefined || !CONVERSIONS.includes(node.expression.text)) return false;
  return ((checker.getTypeAtLocation(value)?.flags ?? 0) & ANYTHING) !== 0;
}

function isText(node: Node, checker: Checker): boolean {
  return ((checker.getTypeAtLocation(node)?.flags ?? 0) & ANY_TEXT) !== 0;
}
