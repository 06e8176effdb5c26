/** Shows how lines replace each other on a terminal of any size. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { columnsOf, drawOn, type Output, printableText } from './output.ts';

function terminal(columns: number, rows: number): { output: Output; written: string[] } {
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  return {
    output: { isTerminal: true, hasColours: true, size: () => ({ columns, rows }), write },
    written,
  };
}

/** Makes escape sequences readable: ESC[2A becomes `<2A>`. */
function readable(text: string | undefined): string {
  return (text ?? '')
    .replaceAll(String.fromCharCode(27), '')
    .replaceAll(/\[([0-9;]*[A-Za-z])/g, '<$1>');
}

test('the second drawing goes up by the lines of the first, and leaves nothing of it', () => {
  const { output, written } = terminal(80, 24);
  const draw = drawOn(output);
  draw(['a', 'b']);
  draw(['c']);
  draw(['d', 'e', 'f']);
  expect(written.map(readable)).toEqual([
    'a<K>\nb<K>\n<0J>',
    '<2A>c<K>\n<0J>',
    '<1A>d<K>\ne<K>\nf<K>\n<0J>',
  ]);
});

test.each<[string, number, string]>([
  ['abcdef', 6, 'abcdef'],
  ['abcdef', 4, 'abc…'],
  ['\u001B[1mabc\u001B[22mdef', 4, '<1m>abc<22m>…'],
  ['ab\u001B[31mcd\u001B[39m', 1, '…<31m><39m>'],
])('%j on %d columns: colours take no room and always end', (line, columns, drawn) => {
  const { output, written } = terminal(columns, 24);
  drawOn(output)([line]);
  expect(readable(written[0])).toBe(`${drawn}<K>\n<0J>`);
});

test.each<[number, string[]]>([
  [5, ['1', '2', '3', '4']],
  [4, ['1', '2', '… 2 more lines do not fit']],
  [1, ['1', '… 3 more lines do not fit']],
])('of four lines a terminal of height %d shows as many as fit', (rows, drawn) => {
  const { output, written } = terminal(80, rows);
  drawOn(output)(['1', '2', '3', '4']);
  expect(readable(written[0])).toBe(`${drawn.map((line) => `${line}<K>\n`).join('')}<0J>`);
});

test('of foreign text only letters and lines are written; a terminal also gets colours and moves of the cursor', () => {
  const own = '\u001B[31mred\u001B[39m\u001B[2A\u001B[K\n\u001B[0J';
  const foreign = 'a\u001B[2J\u001B]0;x\u0007\u001B[8m\u009B31m\u202Eb\r\n';
  const clean = 'a\uFFFD[2J\uFFFD]0;x\uFFFD\uFFFD[8m\uFFFD31m\uFFFDb \n';
  expect(printableText(own, true)).toBe(own);
  expect(printableText(foreign, true)).toBe(clean);
  expect(printableText(foreign)).toBe(clean);
  expect(printableText(own)).toBe(own.replaceAll('\u001B', '\uFFFD'));
});

test.each([
  ['80', 80],
  ['0', Number.POSITIVE_INFINITY],
  ['-1', Number.POSITIVE_INFINITY],
  ['wide', Number.POSITIVE_INFINITY],
  ['', Number.POSITIVE_INFINITY],
  [undefined, Number.POSITIVE_INFINITY],
])('a pipe with COLUMNS=%s has %d columns', (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
});

test('a command in a pipe wraps its lines at $COLUMNS', () => {
  const code =
    "import { standardOutput } from './src/cli/output.ts'; console.log(standardOutput.size().columns);";
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
    env: { ...process.env, COLUMNS: '60' },
  });
  expect(stdout).toBe('60\n');
});
