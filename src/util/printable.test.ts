/** Tests that no untrusted text can control a terminal, and that all other text stays unchanged. */
import { expect, test } from 'vitest';
import { printable } from './printable.ts';

const ESCAPE = String.fromCharCode(0x1b);
const CSI = String.fromCharCode(0x9b);

test.each([
  ['plain text', 'w1: sha256 is aa, wanted bb → “ü” ●'],
  ['an escape sequence', `a${ESCAPE}[2Jb`, 'a\uFFFD[2Jb'],
  ['the same in one character', `a${CSI}2Jb`, 'a\uFFFD2Jb'],
  ['a title of the window', `${ESCAPE}]0;x${String.fromCharCode(7)}`, '\uFFFD]0;x\uFFFD'],
  ['a return over what stands there', 'bad\rgood', 'bad good'],
  ['lines and tabs', 'a\nb\tc', 'a b c'],
  ['DELETE and NUL', `a${String.fromCharCode(127, 0)}b`, 'a\uFFFD\uFFFDb'],
  [
    'a space without width',
    'cp\u200B1 a\u2060b \uFEFFc so\u00ADft',
    'cp\uFFFD1 a\uFFFDb  c so\uFFFDft',
  ],
  [
    'letters and marks that are not seen',
    'w\u115F1 \u3164a\uFFA0 b\u034Fc \u180Ed \u17B4e \uFFF9f\uFFFB \u{1D173}g \u{E0100}',
    'w\uFFFD1 \uFFFDa\uFFFD b\uFFFDc \uFFFDd \uFFFDe \uFFFDf\uFFFD \uFFFDg \uFFFD',
  ],
  [
    'marks of shorthand and forms of a letter that nothing shows',
    'a\u{1BC9F}\u{1BCA0}b\u{1BCA3}\u{1BCA4} c\uFE00d\uFE0E \uFDFF\uFE10',
    'a\u{1BC9F}\uFFFDb\uFFFD\u{1BCA4} c\uFFFDd\uFFFD \uFDFF\uFE10',
  ],
  ['what is no character, and breaks XML', 'a\uFFFEb\uFFFFc', 'a\uFFFDb\uFFFDc'],
  ['a mark that chooses the form of an emoji', '❤\uFE0F'],
  ['tags', 'w1\u{E0041}\u{E007F}', 'w1\uFFFD\uFFFD'],
  ['letters that need a joiner, and emoji', 'می\u200Cخواهم 👩\u200D💻 🚀'],
  ['another direction of writing', 'a\u202Eb', 'a\uFFFDb'],
])('%s', (_name, text, expected = text) => {
  expect(printable(text)).toBe(expected);
});
