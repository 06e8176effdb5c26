/** Reads the simple JSONPath of additional printer columns: members, indexes, `[*]`, and filters such as `[?(@.type=='Ready')]`. */
import { isRecord } from '../../../src/util/json.ts';

/** One step of a path. It returns the values that the step finds in `value`. */
type Step = (value: unknown) => unknown[];

/**
 * Matches one step of a path: a member in brackets or after a point, an index, `[*]`, or a filter. A backslash before a
 * point makes the point part of the member's name.
 */
const STEP =
  /^(?:\.((?:\\.|[^.[\\])+)|\[(-?\d+)\]|\[(\*)\]|\['((?:\\.|[^'\\])+)'\]|\[\?\(@((?:\.[\w-]+)+)\s*(==|!=)\s*(?:'([^']*)'|"([^"]*)"|(\w+))\)\])/;

/** Returns a function that reads the values at the path; undefined if the path uses other parts of JSONPath. */
export function parseJsonPath(path: string): ((value: unknown) => unknown[]) | undefined {
  const steps: Step[] = [];
  let rest = path;
  while (rest !== '') {
    const match = STEP.exec(rest);
    if (!match) return undefined;
    steps.push(stepOf(match));
    rest = rest.slice(match[0].length);
  }
  return (value) => steps.reduce<unknown[]>((found, step) => found.flatMap(step), [value]);
}

function stepOf(match: RegExpExecArray): Step {
  const [, member, index, all, quoted, field, operator, single, double, bare] = match;
  const name = (member ?? quoted)?.replaceAll(/\\(.)/g, '$1');
  if (name !== undefined) return (value) => present(memberOf(value, name));
  if (index !== undefined)
    return (value) => present(Array.isArray(value) ? value.at(Number(index)) : undefined);
  if (all !== undefined) return itemsOf;
  const path = (field ?? '').slice(1).split('.');
  const wanted = single ?? double ?? bare ?? '';
  return (value) => itemsOf(value).filter((item) => fits(item));

  function fits(item: unknown): boolean {
    const found = path.reduce<unknown>(memberOf, item);
    if (found === undefined) return false;
    const text = typeof found === 'string' ? found : JSON.stringify(found);
    return (text === wanted) === (operator === '==');
  }
}

function itemsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function present(value: unknown): unknown[] {
  return value === undefined ? [] : [value];
}
