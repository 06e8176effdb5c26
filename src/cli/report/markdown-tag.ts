/** The tag with which all Markdown is written. test/repo/markdown.test.ts finds Markdown that is written without it. */
import { printable } from '../../util/printable.ts';
import { Markup } from './markup.ts';

/** Escapes each value of the template. */
export const md = Markup.tagOf(escaped);

/** Escapes text from the cluster, so that it is never Markdown or HTML, and so that an address in it does not become a link. */
function escaped(text: string, before: string): string {
  const inLine = printable(text.replaceAll(/[\n\r]+/g, ' '))
    .replaceAll(/[\\`*_[\]#~|]/g, String.raw`\$&`)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('://', '&#58;//')
    .replaceAll('@', '&#64;')
    .replaceAll(/\bwww\./gi, (found) => `${found.slice(0, -1)}&#46;`);
  // At the beginning of a line, these characters would begin a list.
  const isFirst = before === '' || before === '* ';
  return isFirst ? inLine.replace(/^(\d{0,9})([-+.)])/, String.raw`$1\$2`) : inLine;
}
