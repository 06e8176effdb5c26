/**
 * Installs what package-lock.json names, on any Node >= 20 and without any package.
 * The npm scripts run it first. If node_modules already matches the lock file, it only compares a hash.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
/** The file with the hash of the lock file from which node_modules was installed. */
const MARK = join(MODULES, '.refit-lock');
const PROGRESS_MS = 5_000;
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const FORCE_MS = 2_000;
const INTERRUPTED = 130;
let interrupted = false;

const wanted = createHash('sha256')
  .update(await readFile(join(ROOT, 'package-lock.json')))
  .digest('hex');
const installed = await readFile(MARK, 'utf8').catch(() => undefined);
if (installed !== wanted) {
  process.exitCode = await install();
  if (process.exitCode === 0) await writeFile(MARK, wanted);
}

/** @returns {Promise<number>} npm's exit code */
async function install() {
  const started = performance.now();
  const seconds = () => Math.round((performance.now() - started) / 1000);
  const say = (/** @type {string} */ line) => process.stderr.write(`${line}\n`);
  say('installing the packages of package-lock.json, once');
  const progress = setInterval(() => say(`installing: ${seconds()} s`), PROGRESS_MS);
  const code = await npmCi();
  clearInterval(progress);
  say(
    code === 0
      ? `installed in ${seconds()} s`
      : `npm ci failed with exit code ${code} after ${seconds()} s`,
  );
  return code;
}

/** @returns {Promise<number>} npm's exit code */
async function npmCi() {
  // Removes the entries of node_modules from PATH. Otherwise npm would remove the Node that runs it.
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((entry) => !entry.startsWith(MODULES));
  const child = spawn('npm', ['ci', '--ignore-scripts', '--loglevel=error', '--no-progress'], {
    cwd: ROOT,
    env: { ...process.env, PATH: path.join(delimiter) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (const name of SIGNALS) process.on(name, () => interrupt(child));
  return await new Promise((resolve) => {
    child.on('error', (error) => {
      process.stderr.write(`npm could not be started: ${error.message}\n`);
      resolve(1);
    });
    child.on('exit', (code) => resolve(interrupted ? INTERRUPTED : (code ?? 1)));
  });
}

/**
 * Ends npm, with SIGKILL if npm is slow. This process ends after npm, because no process may still run when the shell
 * shows its prompt again.
 */
function interrupt(/** @type {import('node:child_process').ChildProcess} */ child) {
  interrupted = true;
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), FORCE_MS).unref();
}
