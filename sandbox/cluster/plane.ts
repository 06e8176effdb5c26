/** The API server of a stand-in cluster: in memory, or a real control plane. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '../../src/kube/transport/http-client.ts';
import {
  type ControlPlaneOptions,
  startControlPlane,
} from '../../tools/controlplane/control-plane.ts';
import type { User } from '../../tools/controlplane/kubeconfig.ts';
import { startApiServer } from '../api-server/api-server.ts';
import { removeEndedPods } from './ended-pods.ts';

export interface Plane {
  readonly url: string;
  /** Returns the path of a kubeconfig for `user`. The API server in memory does not distinguish users. */
  kubeconfig(user: User): Promise<string>;
  /** The path of a log with one JSON object for each answered request; undefined if the API server keeps no such log. */
  readonly auditLog?: string | undefined;
  stop(): Promise<void>;
}

export async function startSandboxPlane(directory: string): Promise<Plane> {
  const server = await startApiServer();
  const path = join(directory, 'kubeconfig.json');
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'embedded',
    contexts: [{ name: 'embedded', context: { cluster: 'embedded', user: 'anybody' } }],
    clusters: [{ name: 'embedded', cluster: { server: server.url } }],
    users: [{ name: 'anybody', user: {} }],
  };
  await writeFile(path, JSON.stringify(kubeconfig));
  const client = createClient({ server: server.url, user: {}, namespace: 'default', files: [] });
  const ended = removeEndedPods(client);
  return {
    url: server.url,
    kubeconfig: () => Promise.resolve(path),
    async stop() {
      await ended[Symbol.asyncDispose]();
      client.close();
      await server.stop();
    },
  };
}

export async function startRealPlane(
  options: Omit<ControlPlaneOptions, 'audit' | 'components'>,
): Promise<Plane> {
  return await startControlPlane({ ...options, audit: true });
}
