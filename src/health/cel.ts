/**
 * Compiles and evaluates expressions in the Common Expression Language (CEL). An expression can access only `object`,
 * and is stopped at its limits of time and size. The evaluation of every CEL expression ends, but nested macros and
 * regular expressions may take years, and the values may become larger than the memory.
 */
import { createContext, Script } from 'node:vm';
import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { isRecord } from '../util/json.ts';
import { CelBounds } from './cel-bounds.ts';

/** The result of an expression for an object. */
export type CelAnswer =
  /**
   * If the expression is false, `detail` shows the values that were compared. It is empty if the expression compares no
   * values.
   */
  | { readonly kind: 'value'; readonly value: boolean; readonly detail: string }
  /** The expression cannot be evaluated for this object: a field is missing, or types do not match. */
  | { readonly kind: 'error'; readonly message: string }
  /** The evaluation exceeded a limit of time or size. */
  | { readonly kind: 'stopped'; readonly message: string };

export interface CelProgram {
  /**
   * Evaluates the expression. `object` is plain JSON data. Blocks the event loop for at most `CEL_LIMIT_MS`; on a busy
   * machine for at most 1.4 seconds.
   */
  evaluate(object: unknown): CelAnswer;
}

/** Milliseconds of CPU time that one evaluation may take. A usual evaluation takes far less than one millisecond. */
export const CEL_LIMIT_MS = 50;
/**
 * Milliseconds of elapsed time after which each attempt but the first one is stopped. On a busy machine, this process may
 * get almost no CPU time during an attempt. The next attempts then have more time.
 */
const ATTEMPTS_MS = [CEL_LIMIT_MS, 250, 1_000];
/**
 * If these attempts used less than this fraction of the limit, the process was waiting for the CPU. An attempt that
 * computes all the time uses almost the whole limit.
 */
const USED_SHARE = 0.8;
const MOST_NODES = 1_000;
const MOST_DEPTH = 60;
/** The most characters of a value in a detail. */
const LONGEST_VALUE = 40;
const COMPARISONS = new Set(['==', '!=', '<', '<=', '>', '>=']);

const common = new Environment({
  unlistedVariablesAreDyn: false,
  homogeneousAggregateLiterals: false,
  enableOptionalTypes: true,
  limits: { maxAstNodes: MOST_NODES, maxDepth: MOST_DEPTH },
}).registerVariable('object', 'dyn');

/** Returns the program. If the expression is invalid, returns a text that describes the error and its position. */
export function compileCel(expression: string): CelProgram | string {
  // An environment keeps the types of all its expressions for ever, so each expression has its own.
  const environment = common.clone();
  const bounds = new CelBounds(environment);
  const checked = within(() => {
    const { valid, type, error } = environment.check(expression);
    if (!valid) return faultOf(error);
    if (type !== 'bool' && type !== 'dyn') return `it is of the type ${type}, and not bool`;
    return environment.parse(expression);
  });
  if (checked instanceof Stopped)
    return `the expression could not be read completely: ${checked.why}`;
  if (typeof checked === 'string') return checked;
  return { evaluate: (object) => evaluate({ environment, bounds, program: checked }, object) };
}

interface Compiled {
  readonly environment: Environment;
  readonly bounds: CelBounds;
  readonly program: ReturnType<Environment['parse']>;
}

function evaluate({ environment, bounds, program }: Compiled, object: unknown): CelAnswer {
  try {
    const answer = within((): CelAnswer => {
      bounds.restart();
      const context = { object: celValue(object) };
      const value: unknown = program(context);
      if (typeof value !== 'boolean')
        return { kind: 'error', message: `the expression gives ${textOf(value)}, and not a bool` };
      const valueOf = ({ input, range: { start, end } }: ASTNode): unknown =>
        environment.evaluate(input.slice(start, end), { ...context });
      return { kind: 'value', value, detail: value ? '' : detailOf(program.ast, valueOf) };
    });
    const why = answer instanceof Stopped ? answer.why : bounds.exceeded;
    if (why !== undefined) return stopped(why);
    return answer as CelAnswer;
  } catch (error) {
    if (bounds.exceeded !== undefined) return stopped(bounds.exceeded);
    return { kind: 'error', message: faultOf(error) };
  }
}

function stopped(why: string): CelAnswer {
  return { kind: 'stopped', message: `the evaluation was stopped: ${why}` };
}

/** The script calls the current function in `work`. No part of an expression becomes code of the script. */
const sandbox: { work: () => void } = { work: () => undefined };
const context = createContext(sandbox);
const call = new Script('work()');

/** The result if the work did not end in time. */
class Stopped {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/** Returns the result of `work`, which must be repeatable. */
function within<T>(work: () => T): T | Stopped {
  // A pause of the garbage collector uses CPU time of this thread, and may use up the first attempt, so the first attempt
  // never says that the evaluation is too long.
  const first = runFor(CEL_LIMIT_MS, work);
  if (first !== undefined) return first.result;
  const before = process.threadCpuUsage();
  for (const limitMs of ATTEMPTS_MS) {
    const attempt = runFor(limitMs, work);
    if (attempt !== undefined) return attempt.result;
    // The CPU time of all these attempts together is compared with the limit. This is safe, because work that ends in
    // time never needs a large part of the limit.
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
 * Converts a value to CEL: each whole number becomes an int of CEL, as in the API server. Objects have no prototype, so
 * that only their own members exist.
 */
function celValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, celValue(member)] as const);
  return Object.assign(Object.create(null), Object.fromEntries(members)) as object;
}

/** Returns the values of the first false comparison, such as `2 == 3`. Considers the comparisons that `&&` joins. */
function detailOf(node: ASTNode, valueOf: (node: ASTNode) => unknown): string {
  if (node.op === '&&') {
    const [left, right] = node.args;
    return detailOf(valueOf(left) === true ? right : left, valueOf);
  }
  if (!COMPARISONS.has(node.op) || !Array.isArray(node.args)) return '';
  const [left, right] = node.args as [ASTNode, ASTNode];
  return `${textOf(valueOf(left))} ${node.op} ${textOf(valueOf(right))}`;
}

function textOf(value: unknown): string {
  const plain = (_name: string, each: unknown): unknown =>
    typeof each === 'bigint' ? Number(each) : each;
  const text = JSON.stringify(value, plain) ?? typeof value;
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

/**
 * Returns the first line of the message, and the position of the error, which counts from one. Omits the following
 * lines of the message, which show the expression.
 */
function faultOf(error: unknown): string {
  const { summary, message, range } = error as {
    summary?: string;
    message?: string;
    range?: { start: number };
  };
  const text = summary ?? (message ?? String(error)).split('\n')[0] ?? '';
  return range === undefined ? text : `${text}, at character ${range.start + 1}`;
}

/** The error of a timeout comes from the context of the script, so it is not an instance of `Error` in this process. */
function codeOf(error: unknown): unknown {
  return isRecord(error) ? error['code'] : undefined;
}
