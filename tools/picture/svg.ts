/** Draws text of a terminal as SVG: one picture, or pictures that follow each other. */
import { type Frame, isColour, type Line } from './screen.ts';

const COLUMN = 8.4;
const LINE = 20;
const MARGIN = 20;
const TEXT = 'font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre; fill: #d7dde5';
const BOLD = 1;
/** The colours of a terminal that `refit status` uses, on a dark ground. */
const COLOURS: Readonly<Record<number, string>> = {
  31: '#ff7b72',
  32: '#56d364',
  33: '#e3b341',
  36: '#56d4dd',
  90: '#8b949e',
};
/** The time for which the last picture is shown before the animation starts again. */
const REST_MS = 5000;

export function pictureOf(lines: readonly string[], label: string): string {
  const plain = lines.map((text): Line => [{ text, styles: [] }]);
  return framed(sizeOf([plain]), label, '', rowsOf(plain));
}

/**
 * Returns an animation that shows each frame for as long as the terminal showed it. A viewer who prefers reduced motion
 * sees the last frame.
 */
export function filmOf(frames: readonly Frame[], label: string): string {
  const size = sizeOf(frames.map(({ lines }) => lines));
  const begin = frames[0]?.at ?? 0;
  const end = (frames.at(-1)?.at ?? 0) - begin + REST_MS;
  const steps = frames.map(({ at }, index) => {
    const share = (100 * (at - begin)) / end;
    return `${share.toFixed(2)}%{transform:translateX(${-index * size.width}px)}`;
  });
  const last = -(frames.length - 1) * size.width;
  const style = [
    `<style>@keyframes film{${steps.join('')}100%{transform:translateX(${last}px)}}`,
    `.film{animation:film ${end}ms step-end infinite}`,
    `@media (prefers-reduced-motion: reduce){.film{animation:none;transform:translateX(${last}px)}}</style>`,
  ].join('\n');
  const pictures = frames.map(
    ({ lines }, index) => `<g transform="translate(${index * size.width} 0)">${rowsOf(lines)}</g>`,
  );
  return framed(size, label, style, `<g class="film">${pictures.join('\n')}</g>`);
}

interface Size {
  readonly width: number;
  readonly height: number;
}

function sizeOf(pictures: readonly (readonly Line[])[]): Size {
  const lines = pictures.flat();
  const widths = lines.map((line) => line.reduce((sum, { text }) => sum + text.length, 0));
  return {
    width: Math.ceil(2 * MARGIN + COLUMN * Math.max(...widths)),
    height: 2 * MARGIN + LINE * Math.max(...pictures.map(({ length }) => length)),
  };
}

function framed({ width, height }: Size, label: string, style: string, content: string): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">`,
    ...(style === '' ? [] : [style]),
    '<rect width="100%" height="100%" rx="8" fill="#1b2028"/>',
    content,
    '</svg>\n',
  ].join('\n');
}

function rowsOf(lines: readonly Line[]): string {
  const rows = lines.map((line, row) => {
    const spans = line.map(({ text, styles }) => {
      const style = styleOf(styles);
      return style === '' ? escaped(text) : `<tspan${style}>${escaped(text)}</tspan>`;
    });
    return `<tspan x="${MARGIN}" y="${MARGIN + LINE * (row + 0.7)}">${spans.join('')}</tspan>`;
  });
  return [`<text xml:space="preserve" style="${TEXT}">`, ...rows, '</text>'].join('\n');
}

function styleOf(styles: readonly number[]): string {
  const colour = COLOURS[styles.find(isColour) ?? 0];
  const fill = colour === undefined ? '' : ` fill="${colour}"`;
  return styles.includes(BOLD) ? `${fill} font-weight="bold"` : fill;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
