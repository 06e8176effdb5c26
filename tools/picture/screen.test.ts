import { expect, test } from 'vitest';
import { drawOn } from '../../src/cli/output.ts';
import { type Frame, framesOf, type Written } from './screen.ts';
import { filmOf } from './svg.ts';

const ESCAPE = String.fromCharCode(27);

/** Returns what the product writes when it draws these pictures one after the other, 100 ms apart. */
function drawn(pictures: readonly (readonly string[])[]): Written[] {
  const written: Written[] = [{ at: 0, text: 'Plan applied\r\n' }];
  const size = () => ({ columns: 40, rows: 20 });
  const write = (text: string): void => {
    written.push({ at: 100 * written.length, text: text.replaceAll('\n', '\r\n') });
  };
  const draw = drawOn({ isTerminal: true, hasColours: true, size, write });
  for (const lines of pictures) draw(lines);
  return written;
}

function textsOf(frames: readonly Frame[]): string[][] {
  return frames.map(({ lines }) => lines.map((line) => line.map(({ text }) => text).join('')));
}

test('each drawing is a frame that begins where the first one began', () => {
  const frames = framesOf(drawn([['new', 'w1'], ['running', 'w1', 'w2'], ['done']]));
  expect(textsOf(frames)).toEqual([['new', 'w1'], ['running', 'w1', 'w2'], ['done']]);
  expect(frames.map(({ at }) => at)).toEqual([100, 200, 300]);
});

test('a drawing that changes nothing is no frame', () => {
  expect(textsOf(framesOf(drawn([['a'], ['a'], ['b']])))).toEqual([['a'], ['b']]);
});

test('colours and weights end where the terminal ends them', () => {
  const line = `${ESCAPE}[1mPlan${ESCAPE}[22m  ${ESCAPE}[36mrunning${ESCAPE}[39m for 1 s`;
  const [, frame] = framesOf(drawn([['first'], [line]]));
  expect(frame?.lines[0]).toEqual([
    { text: 'Plan', styles: [1] },
    { text: '  ', styles: [] },
    { text: 'running', styles: [36] },
    { text: ' for 1 s', styles: [] },
  ]);
});

test('a sequence that comes in two pieces is read as one', () => {
  const [first, second, third] = drawn([['a'], ['b']]);
  const whole = third?.text ?? '';
  const pieces = whole.split('').map((text) => ({ at: 300, text }));
  const frames = framesOf([first, second, ...pieces].flatMap((each) => each ?? []));
  expect(textsOf(frames)).toEqual([['a'], ['b']]);
});

test('text of the terminal is never markup', () => {
  const film = filmOf(framesOf(drawn([['<script>&"'], ['b']])), 'a "film"');
  expect(film).toContain('&lt;script>&amp;&quot;');
  expect(film).toContain('aria-label="a &quot;film&quot;"');
});
