/** The proof that a host's report arrives, also while an API server that has just started refuses it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MemoryCluster, startMemoryCluster } from '../../../test/agent/memory-cluster.ts';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { nodes } from '../../kube/resources.ts';
import { StatusError } from '../../kube/status-error.ts';
import { silentLogger } from '../../util/log.ts';
import { hostUpgrades, type ProcedureParts } from './host-procedure.ts';
import { parseManifest } from './manifest.ts';
import { type HostUpgrade, type HostUpgrades, type Report, reportOn } from './signal.ts';

let cluster: MemoryCluster;
let name = '';
let count = 0;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const clock = new FakeClock();
const reported = async (): Promise<Report | undefined> => reportOn(await cluster.admin.get(nodes, name));

/** `refuses` is asked at each write. Its scripts end well at once, or when the test says so. */
async function hostWith(refuses: (report: string) => boolean, shell = async () => await Promise.resolve()) {
  name = `host-${++count}`;
  await cluster.admin.create(nodes, { metadata: { name } });
  const patch: KubeClient['patch'] = async (resource, of, body, options) => {
    if (refuses(JSON.stringify(body)))
      throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'not yet' });
    return await cluster.admin.patch(resource, of, body, options);
  };
  const host = `{name: ${name}, role: controlPlane, address: 127.0.0.1}`;
  const binaries = '{kubeadm: {path: /a}, kubelet: {path: /b}}';
  const upgrades = hostUpgrades({
    manifest: parseManifest(`{version: v1.36.3, hosts: [${host}], binaries: ${binaries}}`, 'm.yaml'),
    shells: {
      run: async () => {
        await shell();
        return { code: 0, stdout: '', stderr: '' };
      },
      [Symbol.asyncDispose]: async () => await Promise.resolve(),
    },
    writer: { ...cluster.admin, get: cluster.admin.get.bind(cluster.admin), patch },
    drains: { onChange: () => () => undefined } as unknown as ProcedureParts['drains'],
    clock,
    log: silentLogger,
    abort: new AbortController().signal,
  });
  const target = { key: `leader/${name}`, name, state: 'intended', since: '2026-11-21T08:00:00Z' } as const;
  const work: HostUpgrade = { rollout: 'r', target, version: 'v1.36.3', verb: 'apply', parts: ['kubeadm'] };
  await upgrades.begin(work);
  return { upgrades, target };
}

async function untilOver(upgrades: HostUpgrades, target: HostUpgrade['target']): Promise<void> {
  await expect
    .poll(
      async () => {
        await clock.advance(10_000);
        return upgrades.isAt(target);
      },
      { interval: 5, timeout: 20_000 },
    )
    .toBe(false);
}

test('a report that is refused for a moment is written again', async () => {
  let refusals = 2;
  const { upgrades, target } = await hostWith((report) => report.includes('Verify') && refusals-- > 0);
  await untilOver(upgrades, target);
  expect(await reported()).toMatchObject({ state: 'finished', step: 'Verify' });
});

test('one that is refused for a minute fails the host, and that is written as soon as it may be', async () => {
  const began = clock.monotonic();
  const { upgrades, target } = await hostWith(
    (report) => report.includes('Verify') && (!report.includes('failed') || clock.monotonic() - began < 180_000),
  );
  await untilOver(upgrades, target);
  expect(await reported()).toMatchObject({ state: 'failed', step: 'Verify', message: 'not yet' });
});

test('work that has touched the host is not stopped, though its Node does not say so yet', async () => {
  const running = Promise.withResolvers<void>();
  let scripts = 0;
  const { upgrades, target } = await hostWith(
    () => false,
    async () => await (++scripts === 2 ? running.promise : Promise.resolve()),
  );
  await expect.poll(() => scripts).toBe(2);
  await upgrades.stop(target, 'the plan was aborted');
  expect(upgrades.isAt(target)).toBe(true);
  running.resolve();
  await untilOver(upgrades, target);
  expect(await reported()).toMatchObject({ state: 'finished', touched: true });
});
