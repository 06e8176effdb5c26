/**
 * Tests that the built command needs no packages: every subcommand loads without any package, and the agent loads with
 * its flags.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AGENT_HELP } from '../../src/agent/flags.ts';
import { VERSION } from '../../src/cli/version.ts';
import { AGENT_FLAGS } from '../../src/install/host/program.ts';
import { EXIT } from '../../src/util/errors.ts';
import { buildRefit } from './refit.ts';

const ROOT = join(import.meta.dirname, '..', '..');
let directory = '';
let command = '';

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'refit-build-'));
  command = await buildRefit(directory);
});

afterAll(() => rmSync(directory, { recursive: true }));

test('it says its version', () => {
  expect(execFileSync(process.execPath, [command, 'version'], { encoding: 'utf8' })).toBe(
    `refit ${VERSION}\n`,
  );
});

test('every character takes one byte, in memory too', () => {
  const chunks = readdirSync(directory).filter((name) => name.endsWith('.js'));
  expect(chunks.length).toBeGreaterThan(10);
  expect(
    chunks.filter((name) => /[^\0-\x7F]/.test(readFileSync(join(directory, name), 'utf8'))),
  ).toEqual([]);
});

test('an agent starts with the flags that keep it small', () => {
  const args = [...AGENT_FLAGS, command, 'agent', '--help'];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe(AGENT_HELP);
});

test('an agent forgets the YAML parser once it has read its kubeconfig, and never loads perf_hooks', () => {
  const watch = join(directory, 'watch.cjs');
  const kubeconfig = join(directory, 'kubeconfig');
  writeFileSync(
    watch,
    "process.on('exit', () => console.log([...Object.keys(require.cache), ...process.moduleLoadList].join('\\n')));\n",
  );
  const name = 'c';
  const cluster = { server: 'https://127.0.0.1:1' };
  const parts = { clusters: [{ name, cluster }], users: [{ name, user: { token: 't' } }] };
  const context = `current-context: c\ncontexts: [{ name: c, context: { cluster: c, user: c } }]\n`;
  const lists = Object.entries(parts).map(([key, list]) => `${key}: ${JSON.stringify(list)}\n`);
  writeFileSync(kubeconfig, context + lists.join(''), { mode: 0o600 });
  const own = ['--kubeconfig', kubeconfig, '--state-dir', '/proc/none'];
  const ran = spawnSync(process.execPath, ['--require', watch, command, 'agent', ...own], {
    encoding: 'utf8',
  });
  expect(ran.stderr).toContain('/proc/none');
  expect(ran.stdout).toContain(`${directory}/cluster-config-`);
  expect(ran.stdout).not.toContain(`${directory}/yaml-`);
  expect(ran.stdout).not.toContain('NativeModule perf_hooks');
});

test('an older Node.js says in one line that it is too old, and does nothing else', () => {
  const pretend = join(directory, 'pretend.cjs');
  writeFileSync(
    pretend,
    "Object.defineProperty(process, 'versions', { value: { node: '24.9.1' } });\n",
  );
  const ran = spawnSync(process.execPath, ['--require', pretend, command, 'controller'], {
    encoding: 'utf8',
  });
  expect([ran.status, ran.stdout]).toEqual([EXIT.usage, '']);
  expect(ran.stderr).toMatch(/^refit needs Node\.js 26 or newer, and this is v[^\n]+\n$/);
});

test('that line needs no syntax of newer Node.js', () => {
  const text = readFileSync(command, 'utf8').replaceAll(/\/\*.*?\*\/|'[^']*'/gs, '');
  expect(text).toContain('var ');
  expect(text).not.toMatch(/\b(?:const|let|class|async|await|import)\b|=>|`|\?\.|\?\?/);
});

test('the npm package starts where nothing but it is unpacked', () => {
  const packed = join(directory, 'packed');
  const { filename, files } = pack(packed);
  expect(
    files.filter(
      ({ path }) => !/^(?:dist\/[^/]+\.(?:js|json|txt)|[A-Z]+(?:\.md)?|package\.json)$/.test(path),
    ),
  ).toEqual([]);
  expect(files.map(({ path }) => path)).toContain('dist/THIRD-PARTY-LICENSES.txt');
  execFileSync('tar', ['-xf', join(packed, filename), '-C', packed]);
  const manifest = JSON.parse(readFileSync(join(packed, 'package', 'package.json'), 'utf8')) as {
    bin: { refit: string };
  };
  const installed = join(packed, 'package', manifest.bin.refit);
  expect(execFileSync(process.execPath, [installed, '--version'], { encoding: 'utf8' })).toBe(
    `${VERSION}\n`,
  );
});

/** Returns the archive that `npm pack` wrote into `to`, and the list of its files. */
function pack(to: string): {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
} {
  mkdirSync(to);
  const out = execFileSync('npm', ['pack', '--json', '--pack-destination', to], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const [packed] = JSON.parse(out.slice(out.indexOf('[\n'))) as [ReturnType<typeof pack>];
  return packed;
}

test.each([
  ['controller', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['agent', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['status', ['--kubeconfig', 'missing'], /^REFIT_KUBECONFIG/],
  ['validate', ['missing'], /^REFIT_FILE/],
  ['system-upgrade-controller', [], /^REFIT_USAGE: SYSTEM_UPGRADE_CONTROLLER_NAME is not set/],
])('%s comes as far as its first file', (subcommand, args, line) => {
  const { status, stderr } = spawnSync(process.execPath, [command, subcommand, ...args], {
    cwd: directory,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([EXIT.usage, expect.stringMatching(line)]);
});
