/**
 * Compiles and evaluates expressions in the Common Expression Language (CEL). An expression sees `object` and nothing else, and is
 * stopped when its time is over: CEL always ends, but nested macros and regular expressions may take years.
 */
import { createContext, Script } from 'node:vm';
import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { isRecord } from '../util/json.ts';

/** What an expression says about an object. */
export type CelAnswer =
  /** `detail` shows the values that were compared, if the expression is false; the text is empty if it compares none. */
  | { readonly kind: 'value'; readonly value: boolean; readonly detail: string }
  /** The expression cannot be evaluated for this object: a field is missing, or types do not match. */
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'timeout'; readonly message: string };

export interface CelProgram {
  /** `object` is plain JSON data. This blocks the event loop for `CEL_LIMIT_MS` at most; on a busy machine for 1.3 seconds. */
  evaluate(object: unknown): CelAnswer;
}

/** Milliseconds of CPU time that one evaluation may take. A usual one takes far less than one. */
export const CEL_LIMIT_MS = 50;
/**
 * Milliseconds by the clock after which each attempt is stopped. On a busy machine this process may get almost no CPU time in the
 * first one. Then it tries again, with more time.
 */
const ATTEMPTS_MS = [CEL_LIMIT_MS, 250, 1_000];
/**
 * Attempts that used less of the limit than this waited for the CPU. An attempt that computes all the time uses almost all of the limit.
 */
const USED_SHARE = 0.8;
const MOST_NODES = 1_000;
const MOST_DEPTH = 60;
/** The most characters of a value in a detail. */
const LONGEST_VALUE = 40;
const COMPARISONS = new Set(['==', '!=', '<', '<=', '>', '>=']);

const environment = new Environment({
  unlistedVariablesAreDyn: false,
  homogeneousAggregateLiterals: false,
  enableOptionalTypes: true,
  limits: { maxAstNodes: MOST_NODES, maxDepth: MOST_DEPTH },
}).registerVariable('object', 'dyn');

/** Returns the program, or as a text what is wrong with the expression and where. */
export function compileCel(expression: string): CelProgram | string {
  const checked = within(() => {
    const { valid, type, error } = environment.check(expression);
    if (!valid) return faultOf(error);
    if (type !== 'bool' && type !== 'dyn') return `it is of the type ${type}, and not bool`;
    return environment.parse(expression);
  });
  if (checked instanceof Stopped) return `the expression was not read to its end: ${checked.why}`;
  if (typeof checked === 'string') return checked;
  const { ast } = checked;
  return { evaluate: (object) => evaluate(checked, ast, object) };
}

function evaluate(program: (context: object) => unknown, ast: ASTNode, object: unknown): CelAnswer {
  try {
    const answer = within((): CelAnswer => {
      const context = { object: celValue(object) };
      const value = program(context);
      if (typeof value === 'boolean')
        return { kind: 'value', value, detail: value ? '' : detailOf(ast, context) };
      return { kind: 'error', message: `the expression gives ${textOf(value)}, and not a bool` };
    });
    if (!(answer instanceof Stopped)) return answer;
    return { kind: 'timeout', message: `the evaluation was stopped: ${answer.why}` };
  } catch (error) {
    return { kind: 'error', message: faultOf(error) };
  }
}

/** The script calls whatever `work` is at that time. Nothing of an expression becomes code of the script. */
const sandbox: { work: () => void } = { work: () => undefined };
const context = createContext(sandbox);
const call = new Script('work()');

/** Stands for the result of work that did not end in time. */
class Stopped {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/** Returns the result of `work`, which must be repeatable. */
function within<T>(work: () => T): T | Stopped {
  const before = process.threadCpuUsage();
  for (const limitMs of ATTEMPTS_MS) {
    const attempt = runFor(limitMs, work);
    if (attempt !== undefined) return attempt.result;
    // The CPU time of all attempts counts, because no work that ends in time needs a large part of the limit.
    const { user, system } = process.threadCpuUsage(before);
    if ((user + system) / 1_000 >= CEL_LIMIT_MS * USED_SHARE)
      return new Stopped(`it took more than ${CEL_LIMIT_MS} ms of CPU time`);
  }
  return new Stopped('this machine is too busy, and Refit got almost no CPU time');
}

/** Returns the result of `work`; undefined if it did not end in time. Only a script of node:vm can be stopped in the middle. */
function runFor<T>(limitMs: number, work: () => T): { readonly result: T } | undefined {
  let ended: { readonly result: T } | undefined;
  sandbox.work = () => {
    ended = { result: work() };
  };
  try {
    call.runInContext(context, { timeout: limitMs });
    return ended;
  } catch (error) {
    if (codeOf(error) === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  } finally {
    sandbox.work = () => undefined;
  }
}

/**
 * Returns the value with each whole number as an int of CEL, as the API server does. Objects get no prototype, so that only their
 * own members exist.
 */
function celValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, celValue(member)] as const);
  return Object.assign(Object.create(null), Object.fromEntries(members)) as object;
}

/** Returns the values that the first false comparison among those joined by `&&` compares, such as `2 == 3`. */
function detailOf(node: ASTNode, context: object): string {
  if (node.op === '&&') {
    const [left, right] = node.args;
    return detailOf(valueOf(left, context) === true ? right : left, context);
  }
  if (!COMPARISONS.has(node.op) || !Array.isArray(node.args)) return '';
  const [left, right] = node.args as [ASTNode, ASTNode];
  return `${textOf(valueOf(left, context))} ${node.op} ${textOf(valueOf(right, context))}`;
}

function valueOf({ input, range }: ASTNode, context: object): unknown {
  return environment.evaluate(input.slice(range.start, range.end), { ...context });
}

function textOf(value: unknown): string {
  const plain = (_name: string, each: unknown): unknown =>
    typeof each === 'bigint' ? Number(each) : each;
  const text = JSON.stringify(value, plain) ?? typeof value;
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

/** Returns the first line of the message, without the picture of the expression, and the position, which counts from one. */
function faultOf(error: unknown): string {
  const { summary, message, range } = error as {
    summary?: string;
    message?: string;
    range?: { start: number };
  };
  const text = summary ?? (message ?? String(error)).split('\n')[0] ?? '';
  return range === undefined ? text : `${text}, at character ${range.start + 1}`;
}

/** The error of a timeout belongs to the context of the script, so it is no `Error` of ours. */
function codeOf(error: unknown): unknown {
  return isRecord(error) ? error['code'] : undefined;
}
