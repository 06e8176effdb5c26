/** Proves that the executable releases its lease even if nobody reads its log, and that lost output is an error. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import {
  customResourceDefinitions,
  type KubeObject,
  leases,
  namespaces,
} from '../kube/resources.ts';
import { clientOver } from '../kube/transport/http-client.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const REFIT = `${ROOT}src/cmd/refit.ts`;
const POLICY = {
  apiVersion: 'upgrade.refit.dev/v1alpha1',
  kind: 'UpgradePolicy',
  metadata: { name: 'p' },
  spec: {},
};
const LEASE = { namespace: 'k0s-autopilot', name: 'k0s-autopilot-controller' };

test.each([
  ['nothing can be written', `node ${REFIT} --help > /dev/full`, 'ENOSPC: no space left on device'],
  [
    'only a part can be written',
    // The unit of the limit is 512 or 1024 bytes, depending on the shell. Without the trap, the signal XFSZ would end
    // the process.
    `trap '' XFSZ; ulimit -f 4; node ${REFIT} install controller > "$0/part.yaml"`,
    'EFBIG: file too large',
  ],
])('%s to standard output: one line, and exit code 1', async (_what, command, problem) => {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-stdout-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', command.replaceAll('node ', `${process.execPath} `), directory],
    {
      encoding: 'utf8',
    },
  );
  const hint = 'free disk space, and run the same command again';
  expect(stderr).toBe(`REFIT_FILE: cannot write the output: ${problem}, write (${hint})\n`);
  expect(status).toBe(1);
});

test.each([
  ['an UpgradePolicy', JSON.stringify(POLICY), ['-: UpgradePolicy p is valid\n', '']],
  [
    'nothing',
    '',
    ['', expect.stringContaining('REFIT_FILE: -: is empty or has only comments, expected')],
  ],
])('`-` is standard input, here %s through a socket', (_what, input, told) => {
  const { stdout, stderr } = spawnSync(process.execPath, [REFIT, 'validate', '-'], {
    input,
    encoding: 'utf8',
  });
  expect([stdout, stderr]).toEqual(told);
});

test('an error that cannot be told keeps its exit code', () => {
  const args = ['-c', `"${process.execPath}" ${REFIT} nonsense 2> /dev/full`];
  expect(spawnSync('sh', args).status).toBe(2);
});

test.each([
  ['is closed', 'SIGTERM', 'pipe'],
  ['is on a full disk', 'SIGHUP', openSync('/dev/full', 'w')],
] as const)(
  'a controller whose stderr %s goes on, and releases its lease at %s',
  async (_how, signal, log) => {
    await using things = new AsyncDisposableStack();
    const server = await startApiServer();
    things.defer(async () => await server.stop());
    const admin = clientOver(server.caller);
    for (const file of await readdir(`${ROOT}deploy/crds`))
      await admin.create(
        customResourceDefinitions,
        parse(await readFile(`${ROOT}deploy/crds/${file}`, 'utf8')) as KubeObject,
      );
    await admin.create(namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: LEASE.namespace },
    });
    const directory = await mkdtemp(join(tmpdir(), 'refit-stderr-'));
    things.defer(async () => await rm(directory, { recursive: true }));
    const kubeconfig = join(directory, 'kubeconfig');
    const lists = {
      clusters: [{ name: 'c', cluster: { server: server.url } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
      users: [{ name: 'c', user: {} }],
    };
    await writeFile(
      kubeconfig,
      JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', ...lists }),
    );
    const args = [REFIT, 'controller', '--kubeconfig', kubeconfig];
    const controller = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', log] });
    const exited = once(controller, 'exit');
    things.defer(async () => {
      controller.kill('SIGKILL');
      await exited;
    });
    const holder = async (): Promise<string | undefined> =>
      (await admin.get(leases, LEASE.name, { namespace: LEASE.namespace })).spec?.holderIdentity;
    await vi.waitFor(async () => expect(await holder()).toBeTruthy(), { timeout: 60_000 });
    controller.stderr?.destroy();
    controller.kill(signal);
    expect(await exited).toEqual([0, null]);
    expect(await holder()).toBe('');
  },
);
