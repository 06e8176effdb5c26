/** Shows what `refit preview --cluster` reports in a cluster without Cluster API. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startStubServer } from '../../../../test/faults/stub-server.ts';
import { systemClock } from '../../../util/clock.ts';
import { previewMachines } from './preview-machines.ts';

test('with the kubeconfig of a workload cluster: the management cluster is asked for, not our own kinds', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-preview-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  await using server = await startStubServer((_request, response) =>
    response.writeHead(404).end('404 page not found'),
  );
  const kubeconfig = join(directory, 'kubeconfig.json');
  const lists = {
    clusters: [{ name: 'c', cluster: { server: server.config.server } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  };
  await writeFile(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', ...lists }),
  );
  const flags = { cluster: 'prod', to: 'v1.36.3', output: 'text', kubeconfig } as const;
  const size = () => ({ columns: 80, rows: 24 });
  const output = { write: () => undefined, size, isTerminal: false, hasColours: false };
  const parts = { clock: systemClock, output, abort: new AbortController().signal };
  await expect(previewMachines(flags, parts)).rejects.toMatchObject({
    line: 'REFIT_NO_CRD: this cluster has no Machines of Cluster API (use the kubeconfig of the management cluster)',
  });
});
