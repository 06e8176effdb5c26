/**
 * Tests autopilot's part of the k0s test capitalhostnames: the ControlNode of a host with capital letters in its name
 * has a name without capital letters.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { agentArguments, startHost } from '../../../sandbox/hosts/host.ts';
import { REFIT } from '../../../sandbox/refit.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { startAgentProcess } from '../../agent/agent-process.ts';
import { kubeconfigFor } from '../control-plane.ts';
import { clientOf, PATIENCE } from '../drain-stage.ts';
import { FROM } from './scene.ts';

const HOSTNAME = 'k0s-CONTROLLER';
const NAME = 'k0s-controller';

let admin: KubeClient;
beforeAll(async () => {
  admin = await clientOf('admin');
  await installDefinitions(admin, systemClock);
});
afterAll(() => admin.close());

test('the agent on k0s-CONTROLLER registers k0s-controller', async () => {
  const directory = await mkdtemp(`${tmpdir()}/refit-name-`);
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const host = await startHost({ name: NAME, role: 'controller', directory, version: FROM });
  onTestFinished(async () => await host.stop());
  const all = agentArguments(host, await kubeconfigFor({ controlNode: NAME }));
  const args = all.filter((word, index) => word !== '--name' && all[index - 1] !== '--name');
  const agent = startAgentProcess(
    [process.execPath, REFIT],
    [...args, '--api-address', '127.0.0.11'],
    {
      AUTOPILOT_HOSTNAME: HOSTNAME,
    },
  );
  onTestFinished(async () => {
    await agent.stop('SIGKILL');
    await admin.delete(controlNodes, NAME);
  });
  await vi.waitFor(async () => {
    const { metadata, status } = await admin.get(controlNodes, NAME);
    expect(metadata.labels).toMatchObject({ 'kubernetes.io/hostname': NAME });
    expect(status?.k0sVersion).toBe(FROM);
  }, PATIENCE);
});
