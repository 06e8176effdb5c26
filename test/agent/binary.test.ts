/** Tests the one-file binary on a host without Node.js: its size, its commands, and an agent's memory and update. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AGENT_HELP } from '../../src/agent/flags.ts';
import { VERSION } from '../../src/cli/version.ts';
import { AGENT_FLAGS } from '../../src/install/host/program.ts';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { systemClock } from '../../src/util/clock.ts';
import { EXIT } from '../../src/util/errors.ts';
import { AGENT_ENVIRONMENT } from '../../tools/deploy/agent-environment.ts';
import { PLATFORMS } from '../../tools/release/node-package.ts';
import { leftOut } from '../support/left-out.ts';
import { buildOwnFile, packOneFile } from '../support/one-file.ts';
import { memoryOf, untilAtRest } from '../support/processes.ts';
import { emulator, whyNoEmulator } from './foreign-machine.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, Rig } from './rig.ts';

const MIB = 1024 * 1024;
/** This limit only ends a process that hangs. An emulated start takes many times as long as a real start. */
const EMULATED_MS = 1_200_000;
const NOTHING = { PATH: '/nonexistent' };

let directory = '';
let binary = '';
let cluster: MemoryCluster;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'refit-binary-'));
  binary = await buildOwnFile(directory);
  cluster = await startMemoryCluster();
});
afterAll(async () => {
  await cluster.stop();
  rmSync(directory, { recursive: true });
});

test('it has at most 130 MiB', () => {
  expect(statSync(binary).size / MIB).toBeLessThanOrEqual(130);
});

test('it does not name the folder that it was made in: the same commit gives the same bytes everywhere', () => {
  expect(readFileSync(binary).includes(join(import.meta.dirname, '..', '..'))).toBe(false);
});

test('it needs nothing of its environment, and takes no options for Node.js from there', () => {
  const env = { ...NOTHING, NODE_OPTIONS: '--no-such-option' };
  expect(execFileSync(binary, ['--version'], { env, cwd: '/', encoding: 'utf8' })).toBe(
    `${VERSION}\n`,
  );
});

test.each([
  ['controller', ['--kubeconfig', '/missing'], /^REFIT_KUBECONFIG/],
  ['capi-extension', ['--payload-url', 'http://x/{version}'], /^REFIT_USAGE: capi-extension needs/],
  ['system-upgrade-controller', [], /^REFIT_USAGE: SYSTEM_UPGRADE_CONTROLLER_NAME is not set/],
  ['agent', ['--kubeconfig', '/missing'], /^REFIT_KUBECONFIG/],
  ['status', ['--kubeconfig', '/missing'], /^REFIT_KUBECONFIG/],
  ['why', ['--kubeconfig', '/missing'], /^REFIT_KUBECONFIG/],
  ['preview', ['--kubeconfig', '/missing'], /^REFIT_KUBECONFIG/],
  ['validate', ['/missing'], /^REFIT_FILE/],
  ['kubeadm', ['plan', '-m', '/missing'], /^REFIT_FILE/],
])('%s comes as far as its first file', (command, args, line) => {
  const { status, stderr } = spawnSync(binary, [command, ...args], {
    env: NOTHING,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([EXIT.usage, expect.stringMatching(line)]);
});

test('called by the name of the original controller, it is that', () => {
  const { stderr } = spawnSync(binary, [], {
    argv0: '/bin/system-upgrade-controller',
    env: NOTHING,
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/^REFIT_USAGE: SYSTEM_UPGRADE_CONTROLLER_NAME is not set/);
});

test('its agent upgrades a node, and has at most 60 MiB when it is idle', async () => {
  const options = `--node-options=${AGENT_FLAGS.join(' ')}`;
  expect(
    execFileSync(binary, [options, 'agent', '--help'], { env: NOTHING, encoding: 'utf8' }),
  ).toBe(AGENT_HELP);
  const { admin, kubeconfig } = cluster;
  await using rig = await Rig.start({
    name: 'binary',
    admin,
    kubeconfig,
    refit: [binary, options],
    environment: { ...NOTHING, ...AGENT_ENVIRONMENT },
  });
  forgetContent(binary);
  const agent = rig.startAgent();
  await untilAtRest([agent.pid], systemClock, AbortSignal.timeout(120_000));
  const { rss } = await memoryOf(agent.pid);
  expect(rss).toBeLessThanOrEqual(60);
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  expect(await rig.host.version()).toBe(NEW);
});

const foreign = PLATFORMS.filter(({ arch }) => arch !== process.arch);

describe.each(foreign)('the binary for linux-$arch', (platform) => {
  const why = whyNoEmulator(platform);
  if (why !== undefined) {
    leftOut('an emulated run', why);
    return;
  }

  let run: string[] = [];
  // The download and the build may take minutes on a busy machine. Only hooks have a timeout that is long enough.
  beforeAll(async () => {
    run = [
      ...(await emulator(platform, join(directory, 'machine'))),
      await packOneFile(platform, directory, 'foreign'),
    ];
  });

  test(
    'starts with the libraries of the image, and reads a kubeconfig',
    () => {
      const [command = '', ...args] = run;
      const { status, stderr } = spawnSync(
        command,
        [...args, 'status', '--kubeconfig', '/missing'],
        {
          env: NOTHING,
          encoding: 'utf8',
        },
      );
      expect([status, stderr]).toEqual([EXIT.usage, expect.stringMatching(/^REFIT_KUBECONFIG/)]);
    },
    EMULATED_MS,
  );
});

/**
 * Removes the file from the page cache, as after a boot. The kernel caches a file that was just written in large
 * blocks, and maps a whole block when a process uses one page of it. This would add 35 MiB, which belong to the cache
 * and not to the process.
 */
function forgetContent(file: string): void {
  execFileSync('sync', [file]);
  execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
}
