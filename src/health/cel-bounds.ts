/**
 * Limits the size of every value that an expression computes. A few operations can double a text or a list so often
 * that one more operation exceeds what V8 can allocate. V8 then ends the whole process, even if the operation runs in a
 * worker thread with a limit of its own. So each value is limited before the next operation gets it. A time limit alone
 * is not enough, because V8 does not interrupt a single operation.
 */
import { type ASTNode, type Environment, Optional } from '@marcbachmann/cel-js';

/** The largest size of a value: characters, bytes and elements, counted as often as a written-out value has them. */
const LARGEST_VALUE = 4 * 1024 * 1024;
/** The largest size of all values together that one evaluation creates. */
const LARGEST_SUM = 4 * LARGEST_VALUE;
/**
 * The most comparisons of one character of a text with one character of another text. An operation on two texts is not
 * interrupted at the time limit.
 */
const MOST_COMPARISONS = 2 ** 28;
/** The longest name of a type. A type that contains another type twice doubles the length of its name. */
const LONGEST_TYPE = 2_000;
/** The most values that may be nested in each other. */
const DEEPEST = 1_000;
/** What each new value costs at least, and what each place in a list costs. */
const VALUE_COST = 16;
const PLACE_COST = 8;

/** These operations create no value. They return a part of the object, or the result of another operation. */
const CREATES_NOTHING: ReadonlySet<string> = new Set([
  'value',
  'id',
  '.',
  '.?',
  '[]',
  '[?]',
  '?:',
  '&&',
  '||',
  'accuValue',
  'accuInc',
  'comprehension',
]);

/** The members of the library's objects that its types omit. */
interface CelNode {
  readonly op: string;
  check: (checker: CelChecker, ...rest: unknown[]) => CelType;
  evaluate: (evaluator: CelEvaluator, ...rest: unknown[]) => unknown;
  /** Carries out a method. The first argument is the list of the receiver and the arguments. */
  handle?: (values: readonly unknown[], ...rest: unknown[]) => unknown;
}
interface CelType {
  readonly name: string;
}
interface CelChecker {
  check: (node: CelNode, context: unknown) => CelType;
}
interface CelEvaluator {
  run: (node: CelNode, context: unknown) => unknown;
}

/** The sizes of the values of one evaluation. */
export class CelBounds {
  /** The reason why the evaluation is stopped; undefined while all values are within the limits. */
  exceeded: string | undefined;
  #sizes = new WeakMap<object, number>();
  #sum = 0;

  /** Limits all expressions that the environment checks and evaluates from now on. */
  constructor(environment: Environment) {
    // The library hands its checkers and its evaluator only to the nodes of an expression.
    const checked = environment.parse('true');
    nodeOf(checked.ast).check = this.#limitingCheck(checked.ast);
    checked.check();
    const evaluated = environment.parse('true');
    const node = nodeOf(evaluated.ast);
    const { evaluate } = node;
    node.check = this.#limitingCheck(evaluated.ast);
    node.evaluate = (evaluator, ...rest) => {
      this.#limitEvaluator(evaluator);
      return Reflect.apply(evaluate, node, [evaluator, ...rest]);
    };
    evaluated({ object: null });
  }

  /** Forgets the values of the last evaluation. */
  restart(): void {
    this.exceeded = undefined;
    this.#sizes = new WeakMap();
    this.#sum = 0;
  }

  #limitingCheck(ast: ASTNode): CelNode['check'] {
    const node = nodeOf(ast);
    const { check } = node;
    return (checker, ...rest) => {
      this.#limitChecker(checker);
      return Reflect.apply<CelNode, [CelChecker, ...unknown[]], CelType>(check, node, [
        checker,
        ...rest,
      ]);
    };
  }

  #limitChecker(checker: CelChecker): void {
    const check = checker.check.bind(checker);
    const limited = new WeakSet<CelNode>();
    checker.check = (node, context) => {
      const type = check(node, context);
      if (type.name.length > LONGEST_TYPE)
        throw new Error('the type of a part of the expression is too long');
      const { handle } = node;
      if (node.op !== 'rcall' || handle === undefined || limited.has(node)) return type;
      limited.add(node);
      node.handle = (values, ...rest) => {
        this.#refuseLongWork(values);
        return handle(values, ...rest);
      };
      return type;
    };
  }

  #limitEvaluator(evaluator: CelEvaluator): void {
    const run = evaluator.run.bind(evaluator);
    evaluator.run = (node, context) => {
      // Some operations of CEL ignore an error of an operand. They must not continue the evaluation after this error.
      if (this.exceeded !== undefined) throw new Error(this.exceeded);
      const value = run(node, context);
      if (!CREATES_NOTHING.has(node.op)) this.#count(node.op, value);
      return value;
    };
  }

  #count(op: string, value: unknown): void {
    if (typeof value === 'boolean') return;
    const size = op === 'accuPush' ? this.#sizeAfterPush(value) : this.#sizeOf(value);
    if (size > LARGEST_VALUE)
      this.#refuse(`it computes a value of more than ${LARGEST_VALUE} characters or elements`);
    this.#sum += VALUE_COST + costOf(op, value, size);
    if (this.#sum > LARGEST_SUM) this.#refuse('it computes too many or too large values');
  }

  #sizeAfterPush(value: unknown): number {
    const list = value as unknown[];
    const before = this.#sizes.get(list);
    const size = before === undefined ? this.#sizeOf(list) : before + this.#sizeOf(list.at(-1));
    this.#sizes.set(list, size);
    return size;
  }

  /** Returns the size of the value as if it was written out: if it contains another value twice, both count. */
  #sizeOf(value: unknown, depth = 0): number {
    if (typeof value === 'string') return value.length;
    if (typeof value !== 'object' || value === null) return 1;
    if (value instanceof Uint8Array) return value.length;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    if (depth === DEEPEST) this.#refuse('it computes a value that is nested too deeply');
    let size = 1;
    for (const part of partsOf(value)) size += this.#sizeOf(part, depth + 1);
    this.#sizes.set(value, size);
    return size;
  }

  /** Refuses a method on two values that is not interrupted, or whose result is as large as their product. */
  #refuseLongWork(values: readonly unknown[]): void {
    const [receiver, argument] = values;
    if (typeof argument !== 'string') return;
    const isTooLong =
      typeof receiver === 'string'
        ? receiver.length * argument.length > MOST_COMPARISONS
        : Array.isArray(receiver) && receiver.length * argument.length > LARGEST_VALUE;
    if (isTooLong) this.#refuse('it uses a method on values that are too large');
  }

  #refuse(why: string): never {
    this.exceeded = why;
    throw new Error(why);
  }
}

function costOf(op: string, value: unknown, size: number): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return size;
  const places = Array.isArray(value) && op !== 'accuPush' ? value.length * PLACE_COST : 0;
  // Only a function may have created all parts of a value anew.
  return op === 'call' || op === 'rcall' ? places + size : places;
}

function partsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value)) return value as unknown[];
  if (value instanceof Set) return value as Set<unknown>;
  if (value instanceof Map) return [...(value as Map<unknown, unknown>)].flat();
  if (!(value instanceof Optional)) return Object.entries(value as Record<string, unknown>).flat();
  return value.hasValue() ? [value.value() as unknown] : [];
}

function nodeOf(ast: ASTNode): CelNode {
  return ast as unknown as CelNode;
}
