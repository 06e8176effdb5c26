/**
 * Tests the completion of `kubectl refit …`: asks the real kubectl for the next words, as the completion in a shell
 * does.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createNode, deleteObjects } from '../../sandbox/cluster/objects.ts';
import { BUILT } from '../../sandbox/refit.ts';
import { KUBECTL_COMPLETION } from '../../src/cli/completion.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { run } from '../../tools/controlplane/run.ts';
import { controlPlane, kubeconfigFor } from './control-plane.ts';

const NODE = 'kubectl-completion-w1';

test('kubectl offers commands, and the nodes of its cluster', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-kubectl-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const kubeconfig = await kubeconfigFor('admin');
  const client = createClient(await loadClusterConfig({ path: kubeconfig }));
  onTestFinished(async () => {
    await deleteObjects(client, NODE);
    client.close();
  });
  await createNode(client, NODE, {});
  const plugin = `#!/bin/sh\nexec "${process.execPath}" "${process.env[BUILT]}" "$@"\n`;
  await writeFile(join(folder, 'kubectl-refit'), plugin, { mode: 0o755 });
  const helper = join(folder, 'kubectl_complete-refit');
  await writeFile(helper, KUBECTL_COMPLETION, { mode: 0o755 });
  const environment = {
    PATH: `${folder}${delimiter}${process.env['PATH']}`,
    KUBECONFIG: kubeconfig,
  };
  const asked = async (...words: string[]): Promise<string> =>
    (await run(controlPlane().kubectl, ['__complete', 'refit', ...words], { environment })).stdout;
  expect(await asked('stat')).toMatch(/^status\t.*\n:4\n$/);
  expect(await asked('why', NODE.slice(0, -1))).toBe(`${NODE}\n:4\n`);
});
