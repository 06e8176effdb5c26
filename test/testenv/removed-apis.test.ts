/** The proof that objects of removed kinds are found on a real API server, by a process that is older than their kind. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { askRemovedApis } from '../../src/dialects/autopilot/removed-apis.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { loadClusterConfig } from '../../src/kube/kubeconfig.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';

const CRD = 'removedcrds.k0s.k0sproject.example.com';
const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${CRD}}
spec:
  group: k0s.k0sproject.example.com
  names: {kind: RemovedCRD, plural: removedcrds, singular: removedcrd, listKind: RemovedCRDList}
  scope: Namespaced
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
`;
const OBJECT = `
apiVersion: k0s.k0sproject.example.com/v1beta1
kind: RemovedCRD
metadata: {name: left-over, namespace: default}
`;

let client: KubeClient;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('controller') }));
});

afterAll(async () => {
  client.close();
  await kubectlAs('admin', ['delete', 'crd', CRD, '--ignore-not-found']);
});

async function ask(version: string): Promise<string | undefined> {
  return await askRemovedApis(client, version, new AbortController().signal);
}

test('a kind that came after the process is found as soon as an object of it is there, and no longer', async () => {
  expect(await ask('v99.99.99')).toBeUndefined();
  await apply(DEFINITION);
  await kubectlAs('admin', ['wait', '--for=condition=Established', `crd/${CRD}`]);
  await vi.waitFor(async () => await apply(OBJECT), { timeout: 30_000 });
  await vi.waitFor(
    async () =>
      expect(await ask('v99.99.99')).toBe(
        'removedcrds.k0s.k0sproject.example.com v1beta1 has been removed in Kubernetes v99.99.99, ' +
          'but there are 1 such resources in the cluster',
      ),
    { timeout: 30_000 },
  );
  expect(await ask('v99.99.98')).toBeUndefined();
  await kubectlAs('admin', ['delete', 'removedcrds', 'left-over']);
  expect(await ask('v99.99.99')).toBeUndefined();
});

test('what this Kubernetes serves has nothing that stands against it', async () => {
  expect(await ask('v1.36.3+k0s.0')).toBeUndefined();
});
