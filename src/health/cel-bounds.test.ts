/**
 * Tests the limits of the values that an expression computes: what is allowed up to which size, and what each kind of
 * value counts. No value in these tests is so large that it could end the process.
 */
import { expect, test } from 'vitest';
import { type CelAnswer, compileCel } from './cel.ts';

/** The largest size of a value, and the largest size of all values of one evaluation together. */
const LARGEST = 4 * 1024 * 1024;
const LARGEST_SUM = 4 * LARGEST;
/** The most comparisons of one character with another one. */
const MOST_COMPARISONS = 2 ** 28;

const TOO_LARGE = `it computes a value of more than ${LARGEST} characters or elements`;
const TOO_MANY = 'it computes too many or too large values';
const TOO_DEEP = 'it computes a value that is nested too deeply';
const TOO_LONG_WORK = 'it uses a method on values that are too large';

function answerOf(expression: string, object: object): CelAnswer {
  const program = compileCel(expression);
  if (typeof program === 'string') throw new Error(program);
  return program.evaluate(object);
}

/** Returns `fine` for an evaluation with a result, and otherwise the reason. */
function outcomeOf(expression: string, object: object): string {
  const answer = answerOf(expression, object);
  return answer.kind === 'value'
    ? 'fine'
    : answer.message.replace(/^the evaluation was stopped: /, '');
}

const text = (length: number): string => 'a'.repeat(length);
const texts = (count: number, length: number): string[] =>
  Array.from({ length: count }, () => text(length));

test.each<[string, string, (length: number) => object, number]>([
  ['a text', 'object.text + "x" != ""', (length) => ({ text: text(length) }), LARGEST - 1],
  ['bytes', 'bytes(object.text) != b""', (length) => ({ text: text(length) }), LARGEST],
  [
    'a list of texts',
    '[object.text, object.text] != []',
    (length) => ({ text: text(length) }),
    (LARGEST - 2) / 2,
  ],
  [
    'a list that a macro fills',
    'object.texts.map(each, each) != []',
    (length) => ({ texts: [text(length), ...texts(3, 1_000_000)] }),
    LARGEST - 3_000_001,
  ],
  [
    'a mapping with its keys',
    '{object.text: object.text} != {}',
    (length) => ({ text: text(length) }),
    (LARGEST - 2) / 2,
  ],
  [
    'a list that contains a list twice',
    'cel.bind(inner, [object.text], [inner, inner]) != []',
    (length) => ({ text: text(length) }),
    (LARGEST - 4) / 2,
  ],
])(
  '%s is computed up to the largest size, and no character more',
  (_what, expression, objectOf, most) => {
    expect(outcomeOf(expression, objectOf(most))).toBe('fine');
    expect(outcomeOf(expression, objectOf(most + 1))).toBe(TOO_LARGE);
  },
);

/** Returns texts that count as much as `size`, once something is added to each of them. */
function filling(size: number): string[] {
  const each = Math.floor(size / 4);
  return [...texts(3, each - ADDED), text(size - 3 * each - ADDED)];
}
/** What a text counts in addition to its characters, with one character that is added to it. */
const ADDED = 17;
const FILL = 'object.fill.all(each, each + "x" != "")';

const OBJECT = {
  list: [1, 2, 3],
  text: 'abcde',
  words: 'x y z',
  mapping: { k: 'v', l: 'w' },
  nested: [[1], ['abc']],
  nothing: null,
};

test.each<[string, string, number]>([
  ['no part of the object', 'object.list[0] == 1 && object.?text.hasValue()', 0],
  ['no truth value', '(object.list[0] == 1) == true', 0],
  ['16 for a number', '1 + 1 == 2', 16],
  ['8 more for each place of a list', '[1, 2, 3] == [1]', 40 + 24],
  [
    '8 more for each place of a list that is joined from two lists',
    'object.list + object.list == object.list',
    64,
  ],
  ['one more for each character of a text', 'object.text + "x" == "y"', 16 + 6],
  ['one more for each byte', 'bytes(object.text) + b"x" == b"y"', 16 + 5 + 16 + 6],
  ['one more for the number that a function returns', 'size(object.text) == 5', 17],
  ['one more for the number that a method returns', 'object.text.size() == 5', 17],
  ['one more for the null that a function returns', 'dyn(object.nothing) == null', 17],
  [
    'places and parts of a list that a method returns',
    'object.words.split(" ") == ["x"]',
    16 + 24 + 4 + 24,
  ],
  ['the parts of a mapping that a function returns', 'dyn(object.mapping) == 1', 16 + 5],
  ['the nested parts that a function returns', 'dyn(object.nested) == 1', 16 + 16 + 7],
  ['an optional value and its text', 'optional.of(object.text).hasValue()', 16 + 6],
  ['an optional value that is missing', 'dyn(optional.none()) == 1', 17 + 17],
  [
    'each element that a macro adds, and the list',
    'object.list.map(each, each) == [1]',
    16 + 3 * 16 + 44 + 24,
  ],
])('the sum of all values counts %s', (_what, expression, size) => {
  const whole = `${FILL} && (${expression} || true)`;
  const filled = (more: number): object => ({
    ...OBJECT,
    fill: filling(LARGEST_SUM - size + more),
  });
  expect(outcomeOf(whole, filled(0))).toBe('fine');
  expect(outcomeOf(whole, filled(1))).toBe(TOO_MANY);
});

test('the limits apply to each evaluation alone', () => {
  const program = compileCel(FILL);
  if (typeof program === 'string') throw new Error(program);
  const object = { fill: filling(LARGEST_SUM) };
  expect(program.evaluate(object)).toMatchObject({ kind: 'value', value: true });
  expect(program.evaluate(object)).toMatchObject({ kind: 'value', value: true });
  expect(program.evaluate({ fill: [text(LARGEST)] })).toMatchObject({ kind: 'stopped' });
  expect(program.evaluate(object)).toMatchObject({ kind: 'value', value: true });
});

test('the comparison that the detail shows is limited, too', () => {
  const object = { texts: texts(3, LARGEST - 1) };
  const expression = 'object.texts.map(each, each + "x") == [""]';
  expect(outcomeOf('object.texts.exists(each, each + "x" == "")', object)).toBe('fine');
  expect(outcomeOf(expression, object)).toBe(TOO_LARGE);
});

/** Returns values that are nested in each other so often. */
function nested(times: number): unknown {
  let value: unknown = 1;
  for (let left = times; left > 0; left--) value = [value];
  return value;
}

test('an expression computes no value that is nested more than 1000 times', () => {
  expect(outcomeOf('[object.deep] != []', { deep: nested(999) })).toBe('fine');
  expect(outcomeOf('[object.deep] != []', { deep: nested(1_000) })).toBe(TOO_DEEP);
});

test.each<[string, string, (length: number) => object, number]>([
  [
    'search of a text in a text of 16384 characters',
    'object.text.contains(object.other)',
    (length) => ({ text: text(2 ** 14), other: text(length) }),
    MOST_COMPARISONS / 2 ** 14,
  ],
  [
    'join of 2048 texts',
    'object.list.join(object.other) != ""',
    (length) => ({ list: texts(2_048, 1), other: text(length) }),
    LARGEST / 2_048,
  ],
])('the %s is allowed up to a limit', (_what, expression, objectOf, most) => {
  expect(outcomeOf(expression, objectOf(most))).toBe('fine');
  expect(outcomeOf(expression, objectOf(most + 1))).toBe(TOO_LONG_WORK);
});

test('a method with an argument that is no text is allowed on each text', () => {
  const object = { text: text(LARGEST), numbers: [7] };
  expect(outcomeOf('object.text.substring(object.numbers[0]) != ""', object)).toBe('fine');
});

test('an expression that ignores errors does not continue after it exceeded a limit', () => {
  const object = { text: text(LARGEST), list: texts(2_049, 1), other: text(2_048) };
  const first = 'object.text + "x" == ""';
  const later = 'object.list.join(object.other) == ""';
  expect(outcomeOf(`${first} || ${later} || true`, object)).toBe(TOO_LARGE);
  expect(outcomeOf(`${later} || ${first} || true`, object)).toBe(TOO_LONG_WORK);
});

test('an expression whose types contain each other too often is refused', () => {
  const doubled = (times: number): string => `[1]${'.map(a, {a: a})'.repeat(times)}.size() > 0`;
  expect(compileCel(doubled(3))).toBeTypeOf('object');
  expect(compileCel(doubled(12))).toBe('the type of a part of the expression is too long');
});
