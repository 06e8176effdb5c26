/** A cluster in memory for agents: an API server, custom kinds, a kubeconfig, and a log of all requests. */
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type RequestRecord, startApiServer } from '../../sandbox/api-server/api-server.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';

export interface MemoryCluster {
  readonly url: string;
  readonly admin: KubeClient;
  readonly kubeconfig: string;
  readonly requests: readonly RequestRecord[];
  /** Path of a kubeconfig that reaches the API server by another URL. */
  kubeconfigFor(url: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startMemoryCluster(): Promise<MemoryCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-cluster-'));
  const requests: RequestRecord[] = [];
  const server = await startApiServer({ onRequest: (record) => requests.push(record) });
  const kubeconfigFor = async (url: string): Promise<string> => {
    const path = join(directory, `kubeconfig-${new URL(url).host}.json`);
    const named = { cluster: 'memory', user: 'anybody' };
    const lists = {
      clusters: [{ name: 'memory', cluster: { server: url } }],
      users: [{ name: 'anybody', user: {} }],
      contexts: [{ name: 'memory', context: named }],
    };
    await writeFile(
      path,
      JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'memory', ...lists }),
    );
    return path;
  };
  const kubeconfig = await kubeconfigFor(server.url);
  const admin = createClient(await loadClusterConfig({ path: kubeconfig }));
  for (const file of globSync('deploy/crds/*.yaml')) {
    const crd = parse(await readFile(file, 'utf8'), { version: '1.1' }) as CustomResourceDefinition;
    await admin.create(customResourceDefinitions, crd);
  }
  return {
    url: server.url,
    admin,
    kubeconfig,
    requests,
    kubeconfigFor,
    async stop() {
      admin.close();
      await server.stop();
      await rm(directory, { recursive: true });
    },
  };
}
