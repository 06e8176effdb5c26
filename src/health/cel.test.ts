/**
 * Tests CEL expressions: which expressions compile, what they report about objects, and that no evaluation runs without
 * end.
 */
import { expect, test } from 'vitest';
import { CEL_LIMIT_MS, type CelAnswer, type CelProgram, compileCel } from './cel.ts';

const OBJECT = {
  metadata: { name: 'db', labels: { 'app.kubernetes.io/name': 'pg' } },
  spec: { replicas: 3, ratio: 1.5, paused: false },
  status: { readyReplicas: 2, conditions: [{ type: 'Ready', status: 'True' }], note: null },
};

function compiled(expression: string): CelProgram {
  const program = compileCel(expression);
  if (typeof program === 'string') throw new Error(program);
  return program;
}

function answerOf(expression: string, object: unknown = OBJECT): CelAnswer {
  return compiled(expression).evaluate(object);
}

test.each([
  ['1 +', 'Unexpected token: EOF, at character 4'],
  ['objekt.spec.replicas == 3', 'Unknown variable: objekt, at character 1'],
  ['process.exit()', 'Unknown variable: process, at character 1'],
  ['"yes"', 'it is of the type string, and not bool'],
  ['size(object.spec)', 'it is of the type int, and not bool'],
  ['object.toString()', 'found no matching overload'],
  ['object.metadata.name.constructor("return 1")() == 1', 'at character'],
  [`${'('.repeat(100)}true${')'.repeat(100)}`, 'Exceeded maxDepth (60)'],
])('%s does not compile', (expression, expected) => {
  expect(compileCel(expression)).toContain(expected);
});

test.each([
  ['true', true],
  ['object.spec.paused', false],
  ['object.spec.replicas == 3', true],
  ['object.spec.replicas - 1 == object.status.readyReplicas', true],
  ['object.spec.ratio > 1 && object.spec.ratio * 2.0 == 3.0', true],
  ['object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")', true],
  ['object.status.conditions.all(c, c.status == "False")', false],
  ['object.metadata.labels["app.kubernetes.io/name"] == "pg"', true],
  ['has(object.status.updatedReplicas)', false],
  ['object.status.?updatedReplicas.orValue(0) == 0', true],
  ['object.status.note == null', true],
  ['"constructor" in object || "__proto__" in object', false],
  ['object.metadata.name.matches("^d")', true],
])('%s is %s', (expression, value) => {
  const answer = answerOf(expression);
  expect(answer).toMatchObject({ kind: 'value', value });
  if (value) expect(answer).toMatchObject({ detail: '' });
});

test.each([
  ['object.status.updatedReplicas == 3', 'No such key: updatedReplicas, at character 15'],
  ['object.constructor == 1', 'No such key: constructor'],
  ['object.__proto__ == 1', 'No such key: __proto__'],
  ['object.spec.replicas', 'the expression gives 3, and not a bool'],
  ['object.spec.replicas + "a" == "3a"', 'no such overload'],
  ['object.status.conditions[7].type == "Ready"', 'index out of bounds'],
])('%s cannot be evaluated', (expression, expected) => {
  const answer = answerOf(expression);
  expect(answer.kind).toBe('error');
  expect(answer).toMatchObject({ message: expect.stringContaining(expected) });
});

test.each([
  ['object.status.readyReplicas == object.spec.replicas', '2 == 3'],
  ['object.spec.replicas == 3 && object.status.readyReplicas >= 3', '2 >= 3'],
  ['object.spec.replicas == 4 && object.nope == 3', '3 == 4'],
  ['object.metadata.name == "other"', '"db" == "other"'],
  ['object.status == object.spec', /^\{"readyReplicas":2,.+… == \{"replicas":3,.+…$/],
  ['object.spec.paused', ''],
  ['object.text == "other"', `"${'x'.repeat(38)}" == "other"`, { text: 'x'.repeat(38) }],
  ['object.text == "other"', `"${'x'.repeat(39)}… == "other"`, { text: 'x'.repeat(39) }],
])('%s shows what it compared', (expression, detail, object: object = OBJECT) => {
  expect(answerOf(expression, object)).toEqual({
    kind: 'value',
    value: false,
    detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
  });
});

/**
 * Matches both messages. On a busy machine that gives this process almost no CPU time, the message names that cause
 * instead.
 */
const STOPPED = new RegExp(
  `^the evaluation was stopped: (?:it took more than ${CEL_LIMIT_MS} ms of CPU time|this machine is too busy|it computes too many or too large values)`,
);
const BIG = { list: Array.from({ length: 3_000 }, (_each, index) => index), text: 'a'.repeat(60) };
test.each([
  'object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))',
  'object.list.map(a, object.list.map(b, object.list.map(c, a))).size() > 0',
  '(object.text + "!").matches("^(a+)+$")',
])('%s is stopped, and the next evaluation works', (expression) => {
  const program = compiled(expression);
  // Without the time limit, each of these expressions takes minutes or more, which is longer than the timeout of a
  // test.
  expect(program.evaluate(BIG)).toEqual({
    kind: 'stopped',
    message: expect.stringMatching(STOPPED),
  });
  expect(answerOf('object.list.size() == 3000', BIG)).toMatchObject({ value: true });
});

interface SlowlyRead {
  readonly object: object;
  readonly reads: () => number;
}

/** Returns an object whose first `slow` reads take longer than an attempt may take, because they call `delay`. */
function slowlyRead(slow: number, delay: () => void): SlowlyRead {
  let reads = 0;
  const object = {
    get replicas() {
      reads++;
      if (reads <= slow) delay();
      return 3;
    },
  };
  return { object, reads: () => reads };
}

/** Uses no CPU time, as on a busy machine. */
function wait(): void {
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  Atomics.wait(never, 0, 0, 60_000);
}

/** Uses CPU time, as a pause of the garbage collector. */
function compute(): void {
  for (;;);
}

test('an evaluation whose first attempt was used up by a pause of this process is repeated', () => {
  const { object, reads } = slowlyRead(1, compute);
  expect(answerOf('object.replicas == 3', object)).toMatchObject({ kind: 'value', value: true });
  expect(reads()).toBe(2);
});

test.each([1, 2, 3])(
  'an evaluation that got no CPU time in its first %i attempts is repeated',
  (waits) => {
    const { object, reads } = slowlyRead(waits, wait);
    expect(answerOf('object.replicas == 3', object)).toMatchObject({ kind: 'value', value: true });
    expect(reads()).toBe(waits + 1);
  },
);

test('an evaluation that never gets CPU time is stopped, too', () => {
  const { object, reads } = slowlyRead(Number.POSITIVE_INFINITY, wait);
  expect(answerOf('object.replicas == 3', object)).toEqual({
    kind: 'stopped',
    message:
      'the evaluation was stopped: this machine is too busy, and Refit got almost no CPU time',
  });
  expect(reads()).toBe(4);
});
