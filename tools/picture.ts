/** The command behind `npm run picture`: draws the end of a real `npm start` as docs/picture.svg, for the README. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { runMain } from './main.ts';

const ROOT = join(import.meta.dirname, '..');
const COLUMN = 8.4;
const LINE = 20;
const MARGIN = 20;
const STYLE =
  'font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre; fill: #d7dde5';

async function main(_names: string[], abort: AbortSignal): Promise<number> {
  const child = spawn(process.execPath, ['sandbox/start.ts'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: abort,
  });
  const [output, [code]] = await Promise.all([
    text(child.stdout),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  if (code !== 0) throw new Error(`npm start ended with exit code ${code}`);
  writeFileSync(join(ROOT, 'docs', 'picture.svg'), svgOf(['$ npm start', '…', ...endOf(output)]));
  return 0;
}

/** From the last progress line that has a time to the end. */
function endOf(output: string): string[] {
  const lines = output.trimEnd().split('\n');
  return lines.slice(lines.findLastIndex((line) => /^\d{4}-/.test(line)));
}

function svgOf(lines: readonly string[]): string {
  const width = Math.ceil(2 * MARGIN + COLUMN * Math.max(...lines.map(({ length }) => length)));
  const height = 2 * MARGIN + LINE * lines.length;
  const rows = lines.map(
    (line, row) =>
      `<tspan x="${MARGIN}" y="${MARGIN + LINE * (row + 0.7)}">${escaped(line)}</tspan>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" role="img" aria-label="The end of npm start">`,
    `<rect width="100%" height="100%" rx="8" fill="#1b2028"/>`,
    `<text xml:space="preserve" style="${STYLE}">`,
    ...rows,
    '</text></svg>\n',
  ].join('\n');
}

function escaped(line: string): string {
  return line.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

await runMain(main);
