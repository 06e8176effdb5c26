/**
 * Tests that a pod of `refit capi-extension` is not ready before it serves the hooks. Otherwise a rollout would end the
 * old pod too early, while no other pod serves the hooks.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { callHook } from '../../sandbox/cluster/hook-caller.ts';
import { prepareExtension } from '../../sandbox/cluster/hook-extension.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startMemoryCluster } from './memory-cluster.ts';

const PATIENCE = { timeout: 60_000, interval: 20 };

test('ready once the hooks are served', async () => {
  const directory = fs.mkdtempSync(join(tmpdir(), 'refit-ready-'));
  onTestFinished(() => fs.rmSync(directory, { recursive: true }));
  const cluster = await startMemoryCluster();
  onTestFinished(async () => await cluster.stop());
  const startLeading = async () => await Promise.reject(new Error('not used'));
  const unused = { downloads: { url: 'http://127.0.0.1:9' }, startLeading };
  const extension = await prepareExtension({
    cluster: unused,
    directory,
    kubeconfig: cluster.kubeconfig,
  });
  // The process waits in the middle of its start until the test writes its certificate.
  const path = join(directory, 'hooks', 'tls.crt');
  const certificate = fs.readFileSync(path);
  fs.rmSync(path);
  execFileSync('mkfifo', [path]);
  const health = `127.0.0.1:${await freePort()}`;
  const args = [REFIT, ...extension.commandLine, '--health-address', health];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  const gone = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  const isReady = async (): Promise<boolean> =>
    await fetch(`http://${health}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  const pipe = await vi.waitFor(
    () => fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK),
    PATIENCE,
  );
  expect(await isReady()).toBe(false);
  fs.writeFileSync(`${path}.new`, certificate);
  fs.renameSync(`${path}.new`, path);
  fs.writeSync(pipe, certificate);
  fs.closeSync(pipe);
  await vi.waitFor(async () => expect(await isReady()).toBe(true), PATIENCE);
  const { url, authority, client } = extension;
  await callHook({ url, authority, client, protocol: 'h2' }, 'Discovery', {});
});
