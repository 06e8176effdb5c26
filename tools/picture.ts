/**
 * The command behind `npm run picture`: records a real `npm start` for the README. The progress becomes an animation,
 * and the end becomes a picture.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runMain } from './main.ts';
import { framesOf, type Line, type Written } from './picture/screen.ts';
import { filmOf, pictureOf } from './picture/svg.ts';

const ROOT = join(import.meta.dirname, '..');
const DEMONSTRATION = [process.execPath, 'sandbox/start.ts'] as const;
const COLUMNS = 96;
const ROWS = 24;
const PROMPT: Line = [{ text: '$ refit status -w', styles: [] }];

async function main(_names: string[], abort: AbortSignal): Promise<number> {
  const [command, ...args] = DEMONSTRATION;
  const output = (await run(command, args, abort)).map((piece) => piece.text).join('');
  write('picture.svg', pictureOf(['$ npm start', '…', ...endOf(output)], 'The end of npm start'));
  const shell = `stty cols ${COLUMNS} rows ${ROWS}; ${DEMONSTRATION.join(' ')}`;
  // The program `script` of util-linux gives the command a terminal, as if a person had started it.
  const written = await run('script', ['-qefc', shell, '/dev/null'], abort);
  const frames = framesOf(written).map(({ at, lines }) => ({ at, lines: [PROMPT, ...lines] }));
  write('status-watch.svg', filmOf(frames, 'refit status -w during an upgrade of 8 nodes'));
  return 0;
}

async function run(
  command: string,
  args: readonly string[],
  abort: AbortSignal,
): Promise<Written[]> {
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TERM: 'xterm-256color', NO_COLOR: undefined },
    signal: abort,
  });
  const began = performance.now();
  const written: Written[] = [];
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (piece: string) =>
    written.push({ at: Math.round(performance.now() - began), text: piece }),
  );
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with exit code ${code}`);
  return written;
}

/** Returns the lines from the last progress line with a time to the end of the output. */
function endOf(output: string): string[] {
  const lines = output.trimEnd().split('\n');
  return lines.slice(lines.findLastIndex((line) => /^\d{4}-/.test(line)));
}

function write(name: string, content: string): void {
  writeFileSync(join(ROOT, 'docs', name), content);
}

await runMain(main);
